import Foundation

/// Where the bytes of an index come from.
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

/// A compressed file, decompressed by apt's helper: it knows every format that apt itself may have chosen.
final class AptHelperSource: ByteSource, @unchecked Sendable {
    // @unchecked Sendable: one reader owns a source, and readers are confined to the task that made them.
    static let helper = "/usr/lib/apt/apt-helper"

    private let path: String
    private let process = Process()
    private let output = Pipe()

    init(path: String) throws {
        guard FileManager.default.isExecutableFile(atPath: Self.helper) else {
            throw IndexError.cannotDecompress(path: path)
        }
        self.path = path
        process.executableURL = URL(fileURLWithPath: Self.helper)
        process.arguments = ["cat-file", path]
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        // Stops the helper when the reader is dropped before the end: its next write fails.
        try? output.fileHandleForReading.close()
    }

    func read(upToCount count: Int) throws -> Data {
        let piece = try output.fileHandleForReading.read(upToCount: count) ?? Data()
        if piece.isEmpty {
            process.waitUntilExit()
            guard process.terminationStatus == 0 else {
                throw IndexError.cannotRead(path: path, reason: "apt-helper could not decompress it")
            }
        }
        return piece
    }
}
