import Foundation

/// Reads Debian's control format, the format of `/var/lib/dpkg/status` and of apt's package lists, stanza by stanza.
///
/// A stanza consists of `Name: value` lines. A line that starts with a blank continues the field above it, and an empty
/// line ends the stanza. The reader works on bytes, and keeps no more than a chunk and the current stanza in memory. If
/// a stanza cannot be understood, only that stanza is lost, never the file: see ``Item/malformed(_:)``.
///
/// A reader belongs to one task at a time.
final class ControlFileReader {
    enum Item: Equatable {
        case package(PackageRecord)
        /// A package that dpkg remembers by name only.
        ///
        /// It is not installed, so its stanza has no version.
        case notInstalled(name: String)
        case malformed(MalformedStanza)
    }

    private let source: any ByteSource
    private let chunk: Int
    private let longestStanza: Int
    private var buffer: [UInt8] = []
    /// The offset up to which bytes have been given out.
    private var position = 0
    private var line = 1
    private var reachedEnd = false

    /// Makes a reader of `source`, which it reads in pieces of `chunk` bytes.
    ///
    /// If a stanza is longer than `longestStanza` bytes, the file has another format: the stanza is cut there and
    /// reported as malformed.
    init(_ source: any ByteSource, chunk: Int = 256 << 10, longestStanza: Int = 8 << 20) {
        self.source = source
        self.chunk = chunk
        self.longestStanza = longestStanza
    }

    /// The next stanza; `nil` at the end of the file.
    func next() throws -> Item? {
        guard try skipBlankLines() else { return nil }
        let firstLine = line
        let length = try measureStanza()
        defer { position += length }

        guard length <= longestStanza else {
            return .malformed(MalformedStanza(line: firstLine, reason: .tooLong))
        }
        return buffer.withUnsafeBytes { bytes in
            let stanza = UnsafeRawBufferPointer(rebasing: bytes[position..<position + length])
            do throws(MalformedStanza) {
                return try StanzaParser.parse(stanza, firstLine: firstLine)
            } catch {
                return .malformed(error)
            }
        }
    }

    /// Moves to the first line that is not blank, and returns whether there is one.
    private func skipBlankLines() throws -> Bool {
        while true {
            let end = try endOfLine(at: 0)
            guard end > 0 else { return false }
            guard isBlank(position..<position + end) else { return true }
            position += end
            line += 1
        }
    }

    /// The number of bytes up to the blank line that ends the stanza at `position`.
    private func measureStanza() throws -> Int {
        var length = 0
        while length <= longestStanza {
            let end = try endOfLine(at: length)
            guard end > length, !isBlank(position + length..<position + end) else { break }
            length = end
            line += 1
        }
        return length
    }

    /// The end of the line that starts `offset` bytes after `position`, counted from there and with its newline.
    private func endOfLine(at offset: Int) throws -> Int {
        var searched = offset
        while true {
            let newline = buffer.withUnsafeBytes { bytes -> Int? in
                let rest = bytes[(position + searched)...]
                guard let base = rest.isEmpty ? nil : bytes.baseAddress.map({ $0 + rest.startIndex }) else {
                    return nil
                }
                return memchr(base, 0x0A, rest.count).map { UnsafeRawPointer($0) - base }
            }
            if let newline { return searched + newline + 1 }
            searched = buffer.count - position
            guard searched <= longestStanza, try fill() else { return searched }
        }
    }

    private func isBlank(_ range: Range<Int>) -> Bool {
        buffer[range].allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
    }

    /// Drops the bytes that were given out and appends the next chunk.
    ///
    /// It returns `false` at the end of the source.
    private func fill() throws -> Bool {
        guard !reachedEnd else { return false }
        buffer.removeFirst(position)
        position = 0
        let piece = try source.read(upToCount: chunk)
        reachedEnd = piece.isEmpty
        buffer.append(contentsOf: piece)
        return !reachedEnd
    }
}

/// A stanza without usable content, and the reason.
struct MalformedStanza: Error, Equatable, CustomStringConvertible {
    enum Reason: Equatable {
        case neitherFieldNorContinuation
        case repeatedField(String)
        case missingField(String)
        case notANumber(field: String)
        case tooLong
    }

    /// The line of the file, counted from 1: the one with the error, or the stanza's first if all of it is wrong.
    let line: Int
    let reason: Reason

    var description: String {
        switch reason {
        case .neitherFieldNorContinuation: "line \(line): neither a field nor the continuation of one"
        case .repeatedField(let name): "line \(line): a second \(name) field in one stanza"
        case .missingField(let name): "line \(line): a stanza without a \(name) field"
        case .notANumber(let field): "line \(line): \(field) is not a number of bytes"
        case .tooLong: "line \(line): a stanza too long to be one"
        }
    }
}
