import StrataRows

/// Makes the Swift dictionaries of one fetch.
///
/// All results that have values for the same columns have the same keys. So the keys are hashed once, in a pattern, of
/// which each such result is a copy with other values.
final class DictionaryMaker: FetchedValueReceiver {
    /// The most patterns.
    ///
    /// Results for whose columns there is none are made key by key.
    private static let mostPatterns = 64

    /// The dictionaries so far.
    private(set) var results: [[String: Any]] = []

    private let columns: [DictionaryColumn]
    private let boxes: [ColumnBox]
    private let boxer: ValueBoxer
    /// Whether each value lies in the dictionary itself; an element of a composite attribute lies in a nested one.
    private let isFlat: Bool
    /// The positions of columns by key, by the columns that have a value, a bit for each.
    private var patterns: [UInt64: [String: Int]] = [:]
    /// The pattern of the last result.
    private var last: (present: UInt64, pattern: [String: Int])?
    /// Memory for the values of one result, which are moved to it and on to the dictionary.
    private let scratch: UnsafeMutablePointer<Any>

    init(_ columns: [DictionaryColumn], _ boxer: ValueBoxer) {
        self.columns = columns
        self.boxer = boxer
        boxes = columns.enumerated().map { ColumnBox($0, $1) }
        isFlat = columns.count <= UInt64.bitWidth && columns.allSatisfy { $0.keys.count == 1 }
        scratch = .allocate(capacity: columns.count)
    }

    deinit { scratch.deallocate() }

    /// Whether making a dictionary may run code of the program: the transformers of its attributes.
    var runsCode: Bool { columns.contains { $0.type == .transformable } }

    func begin() { results.removeAll() }

    /// Makes the dictionary of a result, whose values it takes.
    func take(_ values: UnsafeMutableBufferPointer<FetchedValue>) { results.append(dictionary(of: values)) }

    private func dictionary(of values: UnsafeMutableBufferPointer<FetchedValue>) -> [String: Any] {
        guard isFlat else { return keyByKey(values) }
        var present: UInt64 = 0
        for index in values.indices {
            let value = (values.baseAddress.unsafelyUnwrapped + index).move()
            (values.baseAddress.unsafelyUnwrapped + index).initialize(to: .null)
            if boxes[index].box(value, to: scratch + index, boxer, columns) {
                present |= 1 &<< UInt64(truncatingIfNeeded: index)
            }
        }
        // Whatever the way, each value that is present is moved out of the scratch memory.
        let scratch = scratch
        if let pattern = pattern(of: present) { return pattern.mapValues { (scratch + $0).move() } }
        var result: [String: Any] = Dictionary(minimumCapacity: present.nonzeroBitCount)
        for (index, column) in columns.enumerated() where present & (1 &<< UInt64(index)) != 0 {
            result[column.keys[0]] = (scratch + index).move()
        }
        return result
    }

    /// The pattern for results that have a value for these columns, and for no others; `nil` if there are too many.
    private func pattern(of present: UInt64) -> [String: Int]? {
        if let last, last.present == present { return last.pattern }
        if let pattern = patterns[present] {
            last = (present, pattern)
            return pattern
        }
        guard patterns.count < Self.mostPatterns else { return nil }
        var pattern: [String: Int] = Dictionary(minimumCapacity: present.nonzeroBitCount)
        for (index, column) in columns.enumerated() where present & (1 &<< UInt64(index)) != 0 {
            pattern[column.keys[0]] = index
        }
        patterns[present] = pattern
        last = (present, pattern)
        return pattern
    }

    private func keyByKey(_ values: UnsafeMutableBufferPointer<FetchedValue>) -> [String: Any] {
        var result: [String: Any] = Dictionary(minimumCapacity: columns.count)
        for (index, column) in columns.enumerated() {
            guard let value = boxer.box(values[index], column) else { continue }
            if column.keys.count == 1 {
                result[column.keys[0]] = value
            } else {
                result.insert(value, at: column.keys)
            }
        }
        return result
    }
}

/// How the values of a column are boxed: the usual ones without a look at the column's description.
private struct ColumnBox {
    private let position: Int
    private let type: AttributeType
    private let kind: SlotKind

    init(_ position: Int, _ column: DictionaryColumn) {
        self.position = position
        (type, kind) = (column.type, column.type.slotKind)
    }

    /// Puts the value for the column into `place`, which has none.
    ///
    /// - Returns: Whether there is a value; if not, it is nil or cannot be of the column's type.
    @inline(__always)
    func box(
        _ value: consuming FetchedValue,
        to place: UnsafeMutablePointer<Any>,
        _ boxer: ValueBoxer,
        _ columns: [DictionaryColumn]
    ) -> Bool {
        switch consume value {
        case .plain(.null): return false
        case .plain(.string(let text)) where type == .string: place.initialize(to: text)
        case .plain(.int(let whole)) where kind == .int && type != .boolean && type.hasRoom(for: whole):
            place.initialize(to: type.object(whole))
        case .plain(.double(let number)) where kind == .double && type != .date && !number.isNaN:
            place.initialize(to: type.object(number))
        case let other:
            guard let object = boxer.box(other, columns[position]) else { return false }
            place.initialize(to: object)
        }
        return true
    }
}
