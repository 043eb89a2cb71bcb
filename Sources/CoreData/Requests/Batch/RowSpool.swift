import Foundation

/// The new rows of a batch insert, all made before the store has its turn to write.
///
/// So what makes them, which is the user's code, keeps nobody waiting however long it takes, and may itself save. A megabyte
/// of rows is in memory at a time; what is more lies in a file that has no name, so that it goes with the process.
///
/// Used by one thread, the one that executes the request.
final class RowSpool: BatchRowSource {
    private static let pieceSize = 1 << 20

    private let layout: EntityLayout
    private let folder: URL
    private var rowCount = 0
    /// The rows that are in memory: the last ones that were made, then those that are read.
    private var piece: [UInt8] = []
    private var place = 0
    private var file: FileHandle?
    /// How long the pieces in the file are, and how many of them were read.
    private var lengths: [Int] = []
    private var readCount = 0

    var count: Int? { rowCount }

    /// Makes all rows of an insertion.
    ///
    /// What is passed:
    ///   - folder: Where there is room for what does not stay in memory.
    ///
    /// - Throws: What is wrong with a row, `CancellationError`, or errors of writing the file.
    init(_ insertion: BatchInsertion, in folder: URL) throws {
        layout = insertion.layout
        self.folder = folder
        let source = insertion.rows
        if let count = source.count { insertion.making?.expect(count) }
        var counter = RowCounter(insertion.making)
        while let given = try source.next() {
            if let control = insertion.control, control.isCancelled { throw CancellationError() }
            append(given)
            if piece.count >= Self.pieceSize { try flush() }
            counter.count()
        }
        counter.finish()
        guard let file else { return }
        try flush()
        try file.seek(toOffset: 0)
    }

    // MARK: - Writing

    private func append(_ given: GivenRow) {
        rowCount += 1
        given.row.append(to: &piece)
        guard let slots = given.given else { return piece.append(0) }
        piece.append(1)
        for first in stride(from: 0, to: layout.slots.count, by: 8) {
            var bits: UInt8 = 0
            for bit in 0..<8 where slots.contains(first + bit) { bits |= 1 << UInt8(bit) }
            piece.append(bits)
        }
    }

    private func flush() throws {
        let file = try file ?? makeFile()
        self.file = file
        try file.write(contentsOf: Data(piece))
        lengths.append(piece.count)
        piece.removeAll(keepingCapacity: true)
    }

    private func makeFile() throws -> FileHandle {
        let url = folder.appendingPathComponent(".rows-\(UUID().uuidString)")
        let manager = FileManager.default
        guard manager.createFile(atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw CocoaError(
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

    func next() throws -> GivenRow? {
        if place == piece.count, try !readPiece() { return nil }
        return piece.withUnsafeBytes { bytes in
            let row = Row(layout: layout, bytes: bytes, at: &place)
            defer { place += 1 }
            guard bytes[place] == 1 else { return GivenRow(row: row, given: nil) }
            var slots = SlotSet()
            for first in stride(from: 0, to: layout.slots.count, by: 8) {
                place += 1
                for bit in 0..<8 where bytes[place] & (1 << UInt8(bit)) != 0 { slots.insert(first + bit) }
            }
            return GivenRow(row: row, given: slots)
        }
    }

    /// Reads the next piece of the file; false at the end.
    private func readPiece() throws -> Bool {
        guard let file, readCount < lengths.count else { return false }
        let length = lengths[readCount]
        guard let data = try file.read(upToCount: length), data.count == length else {
            throw CocoaError(.fileReadCorruptFile)
        }
        piece = [UInt8](data)
        place = 0
        readCount += 1
        return !piece.isEmpty
    }
}

extension Batch {
    /// The batch with all rows of an insertion made: whatever of it is the user's code has run.
    func withRowsMade(in folder: URL) throws -> Batch {
        guard case .insert(var insertion) = work else { return self }
        insertion.rows = try RowSpool(insertion, in: folder)
        var batch = self
        batch.work = .insert(insertion)
        return batch
    }
}
