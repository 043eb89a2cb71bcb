import Foundation

/// Packs rows into pages, as an engine reads them.
///
///     begin a row → set its values → begin the next row … → take the pages
///
/// A row can be packed if its entity has no binary data: these may be large, and would be copied for each read.
public struct RowPacker: ~Copyable {
    /// The most rows in a page, and the number of their bytes at which a page is full.
    private static let mostRows = 16
    private static let fullSize = 16 << 10
    /// The most bytes of a text that is copied for each read.
    private static let mostTextBytes = 255

    private let stride: Int
    private let owner: (AnyObject & Sendable)?
    private let records: UnsafeMutableRawPointer
    private var recordCount = 0
    private var bytes: UnsafeMutableRawPointer
    private var byteCount = 0
    private var capacity = RowPacker.fullSize * 2
    private var longTexts: [String] = []
    private var pages: [RowPage] = []
    /// The number of rows in `pages`.
    private var pagedCount = 0

    /// Whether rows of these entities can be packed.
    package static func canPack(_ layouts: [EntityLayout]) -> Bool {
        layouts.allSatisfy { layout in
            layout.slots.count <= UInt64.bitWidth && layout.slots.allSatisfy { $0.kind != .data }
        }
    }

    /// Makes a packer.
    ///
    /// - Parameters:
    ///   - slotCount: The most slots of a row.
    ///   - owner: An object that the layer above needs with the rows; each page holds it.
    package init(slotCount: Int, for owner: (AnyObject & Sendable)? = nil) {
        self.owner = owner
        stride = MemoryLayout<RowPage.Record>.size + slotCount * 8
        records = .allocate(byteCount: stride * Self.mostRows, alignment: 8)
        bytes = .allocate(byteCount: capacity, alignment: 8)
    }

    deinit {
        records.deallocate()
        bytes.deallocate()
    }

    /// The number of rows so far.
    package var count: Int { pagedCount + recordCount }

    /// Begins a row, all of whose values are null.
    public mutating func begin(_ layout: Unmanaged<EntityLayout>, key: Int64) {
        if recordCount == Self.mostRows || byteCount >= Self.fullSize { endPage() }
        record(recordCount).initialize(to: RowPage.Record(layout: layout, key: key))
        recordCount += 1
    }

    /// Ends the rows, and gives them away.
    package mutating func takePages() -> [RowPage] {
        endPage()
        defer { (pages, pagedCount) = ([], 0) }
        return pages
    }

    private func record(_ index: Int) -> UnsafeMutablePointer<RowPage.Record> {
        (records + index * stride).assumingMemoryBound(to: RowPage.Record.self)
    }

    private mutating func endPage() {
        guard recordCount > 0 else { return }
        let size = recordCount * stride
        let memory = UnsafeMutableRawPointer.allocate(byteCount: size + byteCount, alignment: 8)
        memory.copyMemory(from: records, byteCount: size)
        (memory + size).copyMemory(from: bytes, byteCount: byteCount)
        pages.append(RowPage(memory, count: recordCount, stride: stride, longTexts, for: owner))
        pagedCount += recordCount
        (recordCount, byteCount) = (0, 0)
        longTexts.removeAll()
    }

    // MARK: - Values of the row that was begun last

    /// Sets a value of one word.
    public mutating func set(_ word: UInt64, _ slot: Int32) {
        let record = record(recordCount &- 1)
        record.pointee.nulls &= ~(1 &<< UInt64(truncatingIfNeeded: slot))
        UnsafeMutableRawPointer(record + 1).assumingMemoryBound(to: UInt64.self)[Int(slot)] = word
    }

    /// Sets a text.
    public mutating func set(text: UnsafeBufferPointer<UInt8>, _ slot: Int32) {
        guard text.count <= Self.mostTextBytes else {
            longTexts.append(String(decoding: text, as: UTF8.self))
            return set(RowPage.word(longText: longTexts.count - 1), slot)
        }
        let place = reserve(text.count)
        if let start = text.baseAddress { (bytes + place).copyMemory(from: start, byteCount: text.count) }
        set(RowPage.word(place: place, size: text.count), slot)
    }

    /// Sets a value of several words.
    public mutating func set(uuid: UUID, _ slot: Int32) { setAligned(uuid, slot) }
    /// Sets a value of several words.
    public mutating func set(decimal: Decimal, _ slot: Int32) { setAligned(decimal, slot) }
    /// Sets the destination of a to-one relationship.
    public mutating func set(reference: ObjectReference, _ slot: Int32) { setAligned(reference, slot) }

    private mutating func setAligned<Value>(_ value: Value, _ slot: Int32) {
        _ = reserve(-byteCount & 7)
        let place = reserve(MemoryLayout<Value>.size)
        (bytes + place).initializeMemory(as: Value.self, to: value)
        set(RowPage.word(place: place, size: MemoryLayout<Value>.size), slot)
    }

    /// Makes room for bytes, and returns their place.
    private mutating func reserve(_ size: Int) -> Int {
        let place = byteCount
        byteCount += size
        guard byteCount > capacity else { return place }
        // One row can have many texts.
        capacity = byteCount * 2
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        larger.copyMemory(from: bytes, byteCount: place)
        bytes.deallocate()
        bytes = larger
        return place
    }
}
