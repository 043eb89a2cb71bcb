import Foundation

/// A source of the bytes of an index.
protocol ByteSource: Sendable {
    /// Reads up to `count` bytes; returns none at the end.
    func read(upToCount count: Int) throws -> Data
}

/// Bytes that are already in memory.
final class MemorySource: ByteSource, @unchecked Sendable {
    // @unchecked Sendable: one reader owns a source, and readers are confined to the task that made them.
    private var rest: Data

    init(_ text: String) {
        rest = Data(text.utf8)
    }

    func read(upToCount count: Int) -> Data {
        let piece = rest.prefix(count)
        rest = rest.dropFirst(count)
        return Data(piece)
    }
}

/// A plain file.
final class FileSource: ByteSource {
    private let handle: FileHandle

    init(path: String) throws {
        handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    }

    deinit {
        try? handle.close()
    }

    func read(upToCount count: Int) throws -> Data {
        try handle.read(upToCount: count) ?? Data()
    }
}

/// A compressed file, decompressed by another program.
final class DecompressedSource: ByteSource, @unchecked Sendable {
    // @unchecked Sendable: one reader owns a source, and readers are confined to the task that made them.
    /// The program that can read every format that apt itself may have chosen.
    static let aptHelper = "/usr/lib/apt/apt-helper"
    private static let gzip = "/bin/gzip"

    private let path: String
    private let program: String
    private let process = Process()
    private let output = Pipe()

    init(path: String) throws {
        // If a gzip file is cut off, apt's helper returns the part that exists, and reports success.
        let isGzip = path.hasSuffix(".gz")
        program = isGzip ? Self.gzip : Self.aptHelper
        guard FileManager.default.isExecutableFile(atPath: program) else {
            throw IndexError.cannotDecompress(path: path, program: program)
        }
        self.path = path
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = isGzip ? ["-dc", "--", path] : ["cat-file", path]
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        // If the reader is dropped before the end, this stops the helper: its next write fails.
        try? output.fileHandleForReading.close()
    }

    func read(upToCount count: Int) throws -> Data {
        let piece = try output.fileHandleForReading.read(upToCount: count) ?? Data()
        if piece.isEmpty {
            process.waitUntilExit()
            guard process.terminationStatus == 0 else {
                throw IndexError.cannotRead(path: path, reason: "\(program) could not decompress it")
            }
        }
        return piece
    }
}
