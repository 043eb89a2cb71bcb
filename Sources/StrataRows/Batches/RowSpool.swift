import Foundation
import StrataKeys

/// The new rows of a batch insert.
///
/// All rows are made before the store begins to write. The user's code makes them, so no other writer waits for that
/// code, and the code may itself save. At most a megabyte of rows is in memory at a time. The rest lies in a file
/// without a name, which the system removes when the process ends.
///
/// One thread uses it, the one that executes the request.
package final class RowSpool: GivenRows {
    private static let pieceSize = 1 << 20

    private let layout: EntityLayout
    private let folder: URL
    private var rowCount = 0
    /// The rows that are in memory, up to `end`: those that were made last, and later those that were read last.
    private var piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize / 16, alignment: 8)
    private var end = 0
    private var place = 0
    private var file: FileHandle?
    /// The lengths of the pieces in the file.
    ///
    /// The number of pieces that were read follows.
    private var lengths: [Int] = []
    private var readCount = 0
    /// The row that was returned last.
    ///
    /// It is used again unless the caller has kept it.
    private var row: Row?

    package var count: Int? { rowCount }

    /// Makes all rows of an insertion.
    ///
    /// - Parameters:
    ///   - insertion: The insertion.
    ///   - folder: The folder for rows that do not stay in memory.
    /// - Throws: An error that says what is wrong with a row, `CancellationError`, or errors of writing the file.
    package init(_ insertion: BatchInsertion, in folder: URL) throws {
        layout = insertion.layout
        self.folder = folder
        try insertion.makeRows { given in
            append(given)
            if end >= Self.pieceSize { try flush() }
        }
        guard let file else { return }
        if end > 0 { try flush() }
        try file.seek(toOffset: 0)
    }

    deinit {
        piece.deallocate()
    }

    // MARK: - Writing

    /// The number of bytes for the bits that mark the slots with given values.
    private var slotBytes: Int { (layout.slots.count + 7) / 8 }

    private func append(_ given: GivenRow) {
        rowCount += 1
        makeRoom(end + given.row.byteCount + 1 + slotBytes)
        guard let start = piece.baseAddress else { return }
        end = start.distance(to: given.row.write(to: start + end))
        piece[end] = given.given == nil ? 0 : 1
        end += 1
        guard let slots = given.given else { return }
        for first in stride(from: 0, to: layout.slots.count, by: 8) {
            var bits: UInt8 = 0
            for bit in 0..<8 where slots.contains(first + bit) { bits |= 1 << UInt8(bit) }
            piece[end] = bits
            end += 1
        }
    }

    private func makeRoom(_ size: Int) {
        guard size > piece.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(size, piece.count * 2), alignment: 8)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece[..<end]))
        piece.deallocate()
        piece = larger
    }

    private func flush() throws {
        let file = try file ?? makeFile()
        self.file = file
        guard let start = piece.baseAddress else { return }
        try file.write(contentsOf: Data(bytesNoCopy: start, count: end, deallocator: .none))
        lengths.append(end)
        end = 0
    }

    private func makeFile() throws -> FileHandle {
        let url = folder.appendingPathComponent(".rows-\(UUID().uuidString)")
        let manager = FileManager.default
        guard manager.createFile(atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw CocoaError.described(
                .fileWriteUnknown,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The rows of a batch insert cannot be kept in \(folder.path) until they are inserted: no file can be made there."
                ]
            )
        }
        defer { try? manager.removeItem(at: url) }  // It stays open; a file whose name cannot be removed does no harm.
        return try FileHandle(forUpdating: url)
    }

    // MARK: - Reading

    package func next() throws -> GivenRow? {
        if place == end, try !readPiece() { return nil }
        guard let start = UnsafeRawPointer(piece.baseAddress) else { return nil }
        let row = blankRow()
        place = start.distance(to: row.read(from: start + place))
        defer { place += 1 }
        guard piece[place] == 1 else { return GivenRow(row: row, given: nil) }
        var slots = SlotSet()
        for first in stride(from: 0, to: layout.slots.count, by: 8) {
            place += 1
            for bit in 0..<8 where piece[place] & (1 << UInt8(bit)) != 0 { slots.insert(first + bit) }
        }
        return GivenRow(row: row, given: slots)
    }

    private func blankRow() -> Row {
        if var last = row?.buffer {
            row = nil
            if isKnownUniquelyReferenced(&last) {
                row = Row(shared: last)
                return Row(shared: last)
            }
        }
        let made = Row(layout: layout, key: 0)
        row = made
        return made
    }

    /// Reads the next piece of the file; returns false at the end.
    private func readPiece() throws -> Bool {
        guard let file, readCount < lengths.count else { return false }
        let length = lengths[readCount]
        guard let data = try file.read(upToCount: length), data.count == length else {
            throw CocoaError(.fileReadCorruptFile)
        }
        makeRoom(length)
        data.copyBytes(to: piece)
        (place, end) = (0, length)
        readCount += 1
        return end > 0
    }
}

extension Batch {
    /// The batch with all rows of an insertion made; no user code runs after that.
    package func withRowsMade(in folder: URL) throws -> Batch {
        guard case .insert(var insertion) = work else { return self }
        insertion.rows = try RowSpool(insertion, in: folder)
        var batch = self
        batch.work = .insert(insertion)
        return batch
    }
}
