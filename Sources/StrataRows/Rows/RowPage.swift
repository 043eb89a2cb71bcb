import Foundation
import StrataLocks

/// The values of one row in a page with other rows, without a reference to the page, which the caller holds.
///
/// To count references would take longer than to read most values. A text is made from its bytes each time it is read.
public struct UnsafePackedRow: @unchecked Sendable {
    // @unchecked Sendable: the memory of a page never changes.
    let page: Unmanaged<RowPage>
    let record: UnsafePointer<RowPage.Record>

    /// The layout, which gives the place of each property.
    package var layout: EntityLayout { record.pointee.layout.takeUnretainedValue() }

    /// The primary key.
    package var key: Int64 { record.pointee.key }

    /// The place of the slot of that name, if the property is stored in the row.
    package func place(named name: String) -> ValuePlace? {
        record.pointee.layout._withUnsafeGuaranteedRef { $0.place(named: name) }
    }

    /// Passes the words of a value to `body`, in the form that they have in a ``Row``; returns `nil` for no value.
    @inlinable
    @inline(__always)
    public func withWords<Result>(
        of slot: Int,
        _ kind: SlotKind,
        _ body: (UnsafeMutablePointer<UInt64>) -> Result
    ) -> Result? {
        guard var word = word(of: slot) else { return nil }
        switch kind {
        case .int, .double: return body(&word)
        case .string: return Self.with(text(word), body)
        case .uuid: return Self.with(uuid(word), body)
        case .decimal: return Self.with(decimal(word), body)
        case .reference: return Self.with(reference(word), body)
        // Rows with such values are not packed.
        case .data: return nil
        }
    }

    @inlinable
    @inline(__always)
    static func with<Value, Result>(_ value: Value, _ body: (UnsafeMutablePointer<UInt64>) -> Result) -> Result {
        var value = value
        return withUnsafeMutableBytes(of: &value) {
            body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt64.self))
        }
    }

    /// The text in a slot; `nil` for no value.
    public func text(of slot: Int) -> String? { word(of: slot).map { text($0) } }

    /// The destination of a to-one relationship; `nil` for no value.
    package func reference(of slot: Int) -> ObjectReference? { word(of: slot).map { reference($0) } }

    /// The word of a slot; `nil` for no value.
    @usableFromInline
    func word(of slot: Int) -> UInt64? {
        guard record.pointee.nulls & (1 &<< UInt64(truncatingIfNeeded: slot)) == 0 else { return nil }
        return UnsafeRawPointer(record + 1).assumingMemoryBound(to: UInt64.self)[slot]
    }

    // MARK: - Values that take more than a word

    @usableFromInline
    func text(_ word: UInt64) -> String { page._withUnsafeGuaranteedRef { $0.text(word) } }

    @usableFromInline
    func uuid(_ word: UInt64) -> UUID { page._withUnsafeGuaranteedRef { $0.value(word) } }

    @usableFromInline
    func decimal(_ word: UInt64) -> Decimal { page._withUnsafeGuaranteedRef { $0.value(word) } }

    @usableFromInline
    func reference(_ word: UInt64) -> ObjectReference { page._withUnsafeGuaranteedRef { $0.value(word) } }
}

/// The memory of some rows: a record of the same size for each, and behind them the bytes of what takes more than a word.
///
/// One allocation for many rows takes the place of one for each row and for each longer text. So a thread that reads rows
/// for another one does not leave it many small objects to free. But a row that is kept keeps its page, so a page is small.
public final class RowPage: @unchecked Sendable {
    // @unchecked Sendable: the memory is written before the page is made.

    /// The part of a row's memory before its words.
    struct Record {
        /// The layout, which lives as long as the process.
        let layout: Unmanaged<EntityLayout>
        let key: Int64
        /// A bit for each slot, set if the value is null.
        var nulls = UInt64.max
    }

    /// The number of rows, at least one.
    package let count: Int
    /// An object that the layer above needs with the rows.
    ///
    /// A reference for each page counts less often than one for each row, which would be to the same object.
    package let owner: (AnyObject & Sendable)?

    private let memory: UnsafeMutableRawPointer
    /// The bytes from one row to the next.
    private let stride: Int
    private let bytes: UnsafeRawPointer
    /// Texts that are too long to be copied for each read.
    private let longTexts: [String]

    /// Takes over memory.
    ///
    /// - Parameters:
    ///   - memory: The records, and then the bytes.
    ///   - count: The number of records.
    ///   - stride: The bytes of a record.
    ///   - longTexts: The texts that are not among the bytes.
    ///   - owner: An object that the layer above needs with the rows.
    init(
        _ memory: UnsafeMutableRawPointer,
        count: Int,
        stride: Int,
        _ longTexts: [String],
        for owner: (AnyObject & Sendable)?
    ) {
        self.memory = memory
        self.count = count
        self.stride = stride
        self.longTexts = longTexts
        self.owner = owner
        bytes = UnsafeRawPointer(memory + count * stride)
    }

    deinit { memory.deallocate() }

    /// A row of the page, valid as long as the page.
    package subscript(index: Int) -> UnsafePackedRow {
        let record = UnsafePointer((memory + index * stride).assumingMemoryBound(to: Record.self))
        return UnsafePackedRow(page: .passUnretained(self), record: record)
    }

    /// A word for a value among the bytes: its place, and its size.
    static func word(place: Int, size: Int) -> UInt64 { UInt64(place) << 32 | UInt64(size) }

    /// A word for a long text.
    static func word(longText index: Int) -> UInt64 { UInt64(index) << 32 | UInt64(UInt32.max) }

    func text(_ word: UInt64) -> String {
        let (place, size) = (Int(word >> 32), Int(word & UInt64(UInt32.max)))
        if size == UInt32.max { return longTexts[place] }
        let start = (bytes + place).assumingMemoryBound(to: UInt8.self)
        return String(ofUTF8: UnsafeBufferPointer(start: start, count: size))
    }

    /// A value whose bytes are aligned.
    func value<Value>(_ word: UInt64) -> Value { bytes.load(fromByteOffset: Int(word >> 32), as: Value.self) }
}
