import Foundation
import StrataPostgreSQL

/// Reads a backup, line by line.
///
/// It is used by one thread.
final class BackupReader {
    private let url: URL
    private let file: UnsafeMutablePointer<FILE>
    private var line: UnsafeMutablePointer<CChar>?
    private var capacity = 0
    let head: BackupHead
    private var digest = BackupDigest()
    /// The digest of all lines before the one that ``part()`` has read last.
    private(set) var digestBeforePart: UInt64 = 0

    /// The part that follows the rows of a table.
    enum Part {
        case table(BackupTable)
        case end(BackupEnd)
    }

    /// Opens a file and reads its head.
    ///
    /// - Throws: `fileReadCorruptFile` (259) if it is no backup, and errors of the disk.
    init(_ url: URL) throws {
        guard let file = fopen(url.path, "re") else { throw BackupFailure.file(url, errno, writing: false) }
        (self.url, self.file) = (url, file)
        var bytes: UnsafeMutablePointer<CChar>?
        defer { free(bytes) }
        var capacity = 0
        var digest = BackupDigest()
        func read() -> Data? {
            let count = getline(&bytes, &capacity, file)
            guard count > 0, let bytes else { return nil }
            digest.add(UnsafeRawBufferPointer(start: bytes, count: count))
            return Data(bytes: bytes, count: count)
        }
        guard read() == Data((BackupHead.title + "\n").utf8), let text = read(),
            let head = try? JSONDecoder().decode(BackupHead.self, from: text)
        else {
            fclose(file)
            throw BackupFailure.damaged("it does not begin like one")
        }
        self.head = head
        self.digest = digest
    }

    deinit {
        free(line)
        fclose(file)
    }

    /// The next line, which is valid until the next call; `nil` at the end of the file.
    private func next() throws -> UnsafeRawBufferPointer? {
        errno = 0
        let count = getline(&line, &capacity, file)
        if count > 0 {
            let bytes = UnsafeRawBufferPointer(start: line, count: count)
            digest.add(bytes)
            return bytes
        }
        guard ferror(file) == 0 else { throw BackupFailure.file(url, errno, writing: false) }
        return nil
    }

    /// Reads the line after the rows of a table.
    func part() throws -> Part {
        digestBeforePart = digest.value
        guard let bytes = try next() else { throw BackupFailure.damaged("its end is missing") }
        let text = Data(bytes)
        if let table = try? JSONDecoder().decode(BackupTable.self, from: text) { return .table(table) }
        if let end = try? JSONDecoder().decode(BackupEnd.self, from: text) { return .end(end) }
        throw BackupFailure.damaged("a line that is no row cannot be read")
    }

    /// Hands out the rows of a table, several at a time.
    ///
    /// - Returns: The number of the rows.
    func rows(_ send: (UnsafeRawBufferPointer) throws -> Void) throws -> Int64 {
        let end = Array((BackupHead.endOfRows + "\n").utf8)
        var (count, chunk): (Int64, [UInt8]) = (0, [])
        while let bytes = try next() {
            if bytes.elementsEqual(end) {
                try chunk.withUnsafeBytes(send)
                return count
            }
            chunk.append(contentsOf: bytes)
            count += 1
            guard chunk.count >= 1 << 16 else { continue }
            try chunk.withUnsafeBytes(send)
            chunk.removeAll(keepingCapacity: true)
        }
        throw BackupFailure.damaged("the rows of a table have no end")
    }
}
