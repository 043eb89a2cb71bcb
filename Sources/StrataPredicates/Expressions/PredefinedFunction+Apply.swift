extension PredefinedFunction {
    /// The value of the function for values of its arguments.
    ///
    /// SQL functions of a store call this too.
    ///
    /// A scalar function gives nil if an argument is nil, or is of a kind that the function does not take. A collection
    /// function takes one collection, or its members as separate arguments.
    package func apply(_ arguments: [PredicateValue]) -> PredicateValue {
        if isCollectionFunction { return aggregate(members(of: arguments)) }
        switch arguments.count {
        case 0: return apply()
        case 1: return apply(arguments[0])
        case 2: return apply(arguments[0], arguments[1])
        default: return .null
        }
    }

    private func members(of arguments: [PredicateValue]) -> [PredicateValue] {
        guard arguments.count == 1 else { return arguments }
        return switch arguments[0] {
        case .collection(let members): members
        case .null: []
        case let single: [single]
        }
    }

    private func apply() -> PredicateValue {
        switch self {
        case .now: .date(Date().timeIntervalSinceReferenceDate)
        case .random: .int(Int64.random(in: 0...Int64(Int32.max)))
        default: .null
        }
    }

    private func apply(_ value: PredicateValue) -> PredicateValue {
        switch self {
        case .sqrt: value.mapDouble { $0.squareRoot() }
        case .log: value.mapDouble(log10)
        case .ln: value.mapDouble(Foundation.log)
        case .exp: value.mapDouble(Foundation.exp)
        case .floor: value.mapFraction { $0.rounded(.down) }
        case .ceiling: value.mapFraction { $0.rounded(.up) }
        case .trunc: value.mapFraction { $0.rounded(.towardZero) }
        case .abs: value.absolute
        case .uppercase: value.mapString { $0.uppercased() }
        case .lowercase: value.mapString { $0.lowercased() }
        case .canonical: value.mapString { StringFolding([.case, .diacritics]).fold($0) }
        case .length: value.length
        case .onesComplement: value.integerValue.map { .int(~$0) } ?? .null
        case .randomBelow: value.integerValue.map { $0 > 0 ? .int(Int64.random(in: 0..<$0)) : .int(0) } ?? .null
        case .noIndex: value
        default: .null
        }
    }

    private func apply(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        switch self {
        case .add: Arithmetic.add(lhs, rhs)
        case .subtract: Arithmetic.subtract(lhs, rhs)
        case .multiply: Arithmetic.multiply(lhs, rhs)
        case .divide: Arithmetic.divide(lhs, rhs)
        case .modulus: Arithmetic.modulus(lhs, rhs)
        case .power: Arithmetic.power(lhs, rhs)
        case .bitwiseAnd: Arithmetic.bitwise(lhs, rhs, by: &)
        case .bitwiseOr: Arithmetic.bitwise(lhs, rhs, by: |)
        case .bitwiseXor: Arithmetic.bitwise(lhs, rhs, by: ^)
        // Swift's smart shifts agree with SQLite: a shift by 64 or more leaves the sign, a negative one shifts the
        // other way.
        case .leftShift: Arithmetic.bitwise(lhs, rhs, by: <<)
        case .rightShift: Arithmetic.bitwise(lhs, rhs, by: >>)
        case .cast: rhs.stringValue.flatMap(CastTarget.init(rawValue:))?.apply(lhs) ?? .null
        case .index: lhs.element(at: rhs)
        default: .null
        }
    }

    // MARK: - Collections

    /// The value of a collection function for the members of a collection.
    ///
    /// Members that are nil do not count, except for `count:`. Without members the sum and the average are 0, and other
    /// functions give nil.
    package func aggregate(_ members: [PredicateValue]) -> PredicateValue {
        if self == .count { return .int(Int64(members.count)) }
        let values = members.filter { !$0.isNull }
        switch self {
        case .sum:
            return values.reduce(.int(0)) { $1.doubleValue == nil ? $0 : Arithmetic.add($0, $1) }
        case .min:
            return values.dropFirst().reduce(values.first ?? .null) { ($1.order($0, folding: []) ?? 1) < 0 ? $1 : $0 }
        case .max:
            return values.dropFirst().reduce(values.first ?? .null) { ($1.order($0, folding: []) ?? -1) > 0 ? $1 : $0 }
        case .average:
            let numbers = values.compactMap(\.doubleValue)
            return numbers.isEmpty ? .int(0) : .number(numbers.reduce(0, +) / Double(numbers.count))
        case .median: return Self.median(values.compactMap(\.doubleValue))
        case .stddev: return Self.standardDeviation(values.compactMap(\.doubleValue))
        case .mode: return .collection(Self.modes(values))
        default: return .null
        }
    }

    private static func median(_ numbers: [Double]) -> PredicateValue {
        guard !numbers.isEmpty else { return .null }
        let sorted = numbers.sorted()
        let middle = sorted.count / 2
        return .number(sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle])
    }

    /// The standard deviation of the whole population.
    private static func standardDeviation(_ numbers: [Double]) -> PredicateValue {
        guard !numbers.isEmpty else { return .null }
        let mean = numbers.reduce(0, +) / Double(numbers.count)
        let squares = numbers.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        return .number((squares / Double(numbers.count)).squareRoot())
    }

    private static func modes(_ values: [PredicateValue]) -> [PredicateValue] {
        var counts: [PredicateValue: Int] = [:]
        for value in values { counts[value, default: 0] += 1 }
        let highest = counts.values.max() ?? 0
        var reported: Set<PredicateValue> = []
        return values.filter { counts[$0] == highest && reported.insert($0).inserted }
    }
}

extension PredicateValue {
    fileprivate func mapDouble(_ transform: (Double) -> Double) -> PredicateValue {
        doubleValue.map { .number(transform($0)) } ?? .null
    }

    /// Rounds a double.
    ///
    /// An integer stays as it is.
    fileprivate func mapFraction(_ transform: (Double) -> Double) -> PredicateValue {
        if case .int = self { return self }
        return mapDouble(transform)
    }

    fileprivate func mapString(_ transform: (String) -> String) -> PredicateValue {
        stringValue.map { .string(transform($0)) } ?? .null
    }

    fileprivate var absolute: PredicateValue {
        guard case .int(let value) = self else { return mapDouble(Swift.abs) }
        return value == .min ? .double(0x1p63) : .int(Swift.abs(value))
    }

    /// The number of UTF-16 code units of a string, as `NSString` counts, or of bytes of data.
    fileprivate var length: PredicateValue {
        switch self {
        case .string(let value): .int(Int64(value.utf16.count))
        case .data(let value): .int(Int64(value.count))
        default: .null
        }
    }

    fileprivate func element(at index: PredicateValue) -> PredicateValue {
        guard case .collection(let members) = self else { return .null }
        if case .string(let name) = index, let symbol = IndexSymbol(rawValue: name) {
            return switch symbol {
            case .first: members.first ?? .null
            case .last: members.last ?? .null
            case .size: .int(Int64(members.count))
            }
        }
        guard let position = index.integerValue.flatMap(Int.init(exactly:)), members.indices.contains(position) else {
            return .null
        }
        return members[position]
    }
}
