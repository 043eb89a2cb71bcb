import Foundation
import StrataLocks
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
    /// The columns of the last result that have a value, and their pattern.
    private var last: (present: UInt64, pattern: [String: Int]) = (0, [:])
    /// Memory for the values of one result, which are moved on to the dictionary.
    private let scratch: UnsafeMutablePointer<Any>
    /// The columns whose values are in the scratch memory.
    private var present: UInt64 = 0
    /// The result that is being made, if results are not flat.
    private var nested: [String: Any] = [:]
    private var numbers = SmallNumbers()

    init(_ columns: [DictionaryColumn], _ boxer: ValueBoxer) {
        self.columns = columns
        self.boxer = boxer
        boxes = columns.map { ColumnBox($0) }
        isFlat = columns.count <= UInt64.bitWidth && columns.allSatisfy { $0.keys.count == 1 }
        scratch = .allocate(capacity: columns.count)
    }

    deinit {
        dropValues()
        scratch.deallocate()
    }

    /// Whether making a dictionary may run code of the program: the transformers of its attributes.
    var runsCode: Bool { columns.contains { $0.type == .transformable } }

    // MARK: - The values of a result

    func begin() {
        results.removeAll()
        dropValues()
    }

    private func dropValues() {
        for index in columns.indices where present & bit(index) != 0 { (scratch + index).deinitialize(count: 1) }
        present = 0
        nested = [:]
    }

    func take(_ value: FetchedValue, at column: Int) {
        switch value {
        case .plain(.null): break
        case .plain(.int(let integer)): take(integer: integer, at: column)
        case .plain(.double(let number)): take(number: number, at: column)
        default: box(value, at: column)
        }
    }

    func take(text: UnsafeBufferPointer<UInt8>, at column: Int) {
        let text = String(ofUTF8: text)
        guard isFlat, boxes[column].type == .string else { return box(.plain(.string(text)), at: column) }
        put(text, at: column)
    }

    func take(integer: Int64, at column: Int) {
        let box = boxes[column]
        guard isFlat, box.kind == .int, box.type != .boolean, box.type.hasRoom(for: integer) else {
            return self.box(.plain(.int(integer)), at: column)
        }
        put(numbers.object(integer, box.type), at: column)
    }

    func take(number: Double, at column: Int) {
        let box = boxes[column]
        guard isFlat, box.kind == .double, box.type != .date, !number.isNaN else {
            return self.box(.plain(.number(number)), at: column)
        }
        put(box.type.object(number), at: column)
    }

    /// Takes a value that is not of the usual kinds; it may turn out that there is none.
    private func box(_ value: FetchedValue, at index: Int) {
        guard let object = boxer.box(value, columns[index]) else { return }
        guard isFlat else {
            let keys = columns[index].keys
            return keys.count == 1 ? nested[keys[0]] = object : nested.insert(object, at: keys)
        }
        put(object, at: index)
    }

    @inline(__always)
    private func put(_ value: Any, at index: Int) {
        (scratch + index).initialize(to: value)
        present |= bit(index)
    }

    private func bit(_ index: Int) -> UInt64 { 1 &<< UInt64(truncatingIfNeeded: index) }

    // MARK: - Dictionaries

    func endResult() {
        guard isFlat else {
            results.append(nested)
            nested = [:]
            return
        }
        // Whatever the way, each value that is present is moved out of the scratch memory.
        let scratch = scratch
        if last.present == present || hasPattern() {
            results.append(last.pattern.mapValues { (scratch + $0).move() })
        } else {
            var result: [String: Any] = Dictionary(minimumCapacity: present.nonzeroBitCount)
            for (index, column) in columns.enumerated() where present & bit(index) != 0 {
                result[column.keys[0]] = (scratch + index).move()
            }
            results.append(result)
        }
        present = 0
    }

    /// Makes the pattern for the columns that are present the last one.
    ///
    /// - Returns: `false` if there are too many patterns.
    private func hasPattern() -> Bool {
        if let pattern = patterns[present] {
            last = (present, pattern)
            return true
        }
        guard patterns.count < Self.mostPatterns else { return false }
        var pattern: [String: Int] = Dictionary(minimumCapacity: present.nonzeroBitCount)
        for (index, column) in columns.enumerated() where present & bit(index) != 0 {
            pattern[column.keys[0]] = index
        }
        patterns[present] = pattern
        last = (present, pattern)
        return true
    }
}

/// The type and the kind of a column, by which its usual values are boxed without a look at the column's description.
private struct ColumnBox {
    let type: AttributeType
    let kind: SlotKind

    init(_ column: DictionaryColumn) {
        (type, kind) = (column.type, column.type.slotKind)
    }
}

/// The objects of small integers, made once for all results of a fetch.
///
/// To make one takes as long as two texts. The results of another fetch have other objects, so that threads which work with
/// different results do not count references to the same ones.
private struct SmallNumbers {
    private static let limit = 256
    /// A fetch of few numbers needs no table.
    private static let fewNumbers = 64

    private var asked = 0
    /// The objects so far, for each type of integers.
    private var known: [NSNumber?] = []

    mutating func object(_ value: Int64, _ type: AttributeType) -> NSNumber {
        guard value >= 0, value < Self.limit else { return type.object(value) }
        if known.isEmpty {
            asked += 1
            guard asked > Self.fewNumbers else { return type.object(value) }
            known = Array(repeating: nil, count: 3 * Self.limit)
        }
        let table = type == .integer16 ? 0 : type == .integer32 ? 1 : 2
        let place = table &* Self.limit &+ Int(value)
        if let number = known[place] { return number }
        let number = type.object(value)
        known[place] = number
        return number
    }
}
