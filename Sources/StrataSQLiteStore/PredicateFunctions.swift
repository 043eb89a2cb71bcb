import Foundation
import StrataPredicates
import StrataSQL
import StrataSQLite

/// The functions of predicates that SQLite lacks, or gives another meaning.
///
/// Each calls the code that evaluates it in memory.
package enum PredicateFunctions {
    /// All functions of single values, for each connection of a store.
    package static let all: [ScalarFunction] =
        StringMatcher.Test.allCases.map(stringTest) + computed.map(function) + [castFunction, lengthFunction]
        + textFunctions

    /// The aggregate functions, for each connection of a store.
    package static let aggregates: [AggregateFunction] = [PredefinedFunction.sum, .average, .median, .stddev].compactMap
    {
        function in
        guard let name = Dialect.sqlite.aggregate(function) else { return nil }
        return AggregateFunction(name) {
            switch function {
            case .sum: SumAccumulator()
            case .average: AverageAccumulator()
            default: GatheringAccumulator(function)
            }
        }
    }

    // MARK: - Functions of values

    private static let computed: [PredefinedFunction] = [
        .modulus, .power, .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement, .sqrt, .log,
        .ln, .exp, .floor, .ceiling, .trunc, .abs, .random, .randomBelow, .sum, .average, .min, .max, .median, .stddev,
        .count,
    ]

    private static func function(_ function: PredefinedFunction) -> ScalarFunction {
        ScalarFunction(
            Dialect.sqlite.function(function),
            argumentCount: function.isCollectionFunction ? nil : function.arity,
            isDeterministic: function != .random && function != .randomBelow
        ) { call in
            if function.isCollectionFunction {
                call.return(function.aggregate((0..<call.count).map { call[$0].predicateValue }))
            } else {
                call.return(function.apply((0..<call.count).map { call[$0].predicateValue }))
            }
        }
    }

    /// `StrataCast(value, type, target)`: the type gives the meaning of a number or a blob.
    private static let castFunction = ScalarFunction(Dialect.sqlite.cast, argumentCount: 3) { call in
        guard let target = CastTarget(rawValue: call[2].string) else { return call.returnNull() }
        let value: PredicateValue
        switch ResolvedType(rawValue: call[1].string) {
        case .date: value = call[0].isNull ? .null : .date(call[0].double)
        case .uuid: value = call[0].uuid.map { .uuid($0) } ?? .null
        default: value = call[0].predicateValue
        }
        call.return(target.apply(value))
    }

    /// The number of UTF-16 code units.
    ///
    /// SQLite's own function counts code points, up to the first zero.
    private static let lengthFunction = ScalarFunction(Dialect.sqlite.function(.length), argumentCount: 1) { call in
        guard !call[0].isNull else { return call.returnNull() }
        // Each first byte of a character counts one. If the character has four bytes, it counts one more.
        call.return(call[0].utf8.reduce(into: Int64(0)) { $0 += $1 & 0xC0 == 0x80 ? 0 : ($1 >= 0xF0 ? 2 : 1) })
    }

    // MARK: - Texts

    private static let textFunctions: [ScalarFunction] = [.uppercase, .lowercase, .canonical].map { function in
        ScalarFunction(Dialect.sqlite.function(function), argumentCount: 1) { call in
            guard !call[0].isNull else { return call.returnNull() }
            let bytes = call[0].utf8
            guard isASCII(bytes) else { return call.return(function.apply([.string(call[0].string)])) }
            // The distance between two letters is the same in both cases.
            let first: UInt8 = function == .uppercase ? 0x61 : 0x41
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(bytes.count, 1)) { folded in
                for index in bytes.indices {
                    folded[index] = bytes[index] &- first < 26 ? bytes[index] ^ 0x20 : bytes[index]
                }
                call.return(utf8: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(folded)[..<bytes.count]))
            }
        }
    }

    /// `StrataLike(text, pattern, folding)` and similar functions.
    ///
    /// If the pattern is a parameter, it is prepared once for each statement.
    private static func stringTest(_ test: StringMatcher.Test) -> ScalarFunction {
        ScalarFunction(Dialect.sqlite.stringTest(test), argumentCount: 3) { call in
            guard !call[0].isNull, !call[1].isNull else { return call.return(false) }
            let pattern = call.compiled(1) { value in
                let folding = StringFolding(rawValue: UInt8(truncatingIfNeeded: call[2].int64))
                return PreparedPattern(test, pattern: value.string, folding: folding)
            }
            do {
                call.return(try pattern.matcher?.matches(call[0].utf8) ?? false)
            } catch {
                EvaluationBudget.note(error)
                call.fail("\(error)")
            }
        }
    }

    private final class PreparedPattern {
        /// The matcher; `nil` for an invalid regular expression, which matches nothing if it comes from data.
        let matcher: StringMatcher?

        init(_ test: StringMatcher.Test, pattern: String, folding: StringFolding) {
            matcher = try? StringMatcher(test, pattern: pattern, folding: folding)
        }
    }

    // MARK: - Aggregates

    /// A sum that becomes a floating-point number if 64 bits are not enough; SQLite's own sum fails then.
    private final class SumAccumulator: AggregateFunction.Accumulator {
        private var sum = PredicateValue.int(0)

        func add(_ call: FunctionCall) {
            let value = call[0].predicateValue
            if value.doubleValue != nil { sum = Arithmetic.add(sum, value) }
        }

        func finish(_ call: FunctionCall) { call.return(sum) }
    }

    /// Collects all values, for functions that need them together.
    private final class GatheringAccumulator: AggregateFunction.Accumulator {
        private let function: PredefinedFunction
        private var values: [PredicateValue] = []

        init(_ function: PredefinedFunction) { self.function = function }

        func add(_ call: FunctionCall) { values.append(call[0].predicateValue) }

        func finish(_ call: FunctionCall) { call.return(function.aggregate(values)) }
    }

    private final class AverageAccumulator: AggregateFunction.Accumulator {
        private var sum = 0.0
        private var count = 0

        func add(_ call: FunctionCall) {
            guard let value = call[0].predicateValue.doubleValue else { return }
            sum += value
            count += 1
        }

        func finish(_ call: FunctionCall) {
            if count == 0 { call.return(Int64(0)) } else { call.return(sum / Double(count)) }
        }
    }
}

extension Value {
    /// The value in the form that predicates know.
    ///
    /// The caller has to know its meaning: a date is a number here.
    fileprivate var predicateValue: PredicateValue {
        switch kind {
        case .null: .null
        case .integer: .int(int64)
        case .real: .number(double)
        case .text: .string(string)
        case .blob: .data(data)
        }
    }
}

extension FunctionCall {
    fileprivate func `return`(_ value: PredicateValue) {
        switch value {
        case .null, .collection, .reference, .entity: returnNull()
        case .int(let value): self.return(value)
        case .double(let value), .date(let value): self.return(value)
        case .string(let value): self.return(value)
        case .uuid(let value): withUnsafeBytes(of: value.uuid) { self.return(blob: $0) }
        case .data(let value): value.withUnsafeBytes { self.return(blob: $0) }
        }
    }
}
