#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Exchanges messages with the compiler.
///
/// Each is an 8-byte little-endian length and that many bytes.
package struct Transport {
    /// The file descriptor that messages are read from.
    let input: Int32
    /// The file descriptor that replies are written to.
    let output: Int32

    /// Makes a transport that reads from one file descriptor and writes to another.
    package init(input: Int32, output: Int32) {
        self.input = input
        self.output = output
    }

    /// The longest message that is accepted.
    ///
    /// A source file is far shorter; a longer length means that the stream is out of step.
    static let lengthLimit: UInt64 = 1 << 30

    package enum Failure: Error, Equatable, CustomStringConvertible {
        case truncated(expected: Int, received: Int)
        case tooLong(UInt64)
        case system(operation: String, code: Int32)

        package var description: String {
            switch self {
            case .truncated(let expected, let received):
                "the message ended after \(received) of \(expected) bytes"
            case .tooLong(let length):
                "a message of \(length) bytes was announced; at most \(Transport.lengthLimit) are taken"
            case .system(let operation, let code):
                "\(operation) failed: \(String(cString: strerror(code)))"
            }
        }
    }

    /// Returns the next message, or `nil` if the compiler has finished.
    ///
    /// The compiler finishes with an empty message, or by closing the stream between two messages.
    func receive() throws(Failure) -> [UInt8]? {
        let header = try read(8)
        guard !header.isEmpty else { return nil }
        guard header.count == 8 else { throw .truncated(expected: 8, received: header.count) }

        var length: UInt64 = 0
        for byte in header.reversed() { length = length << 8 | UInt64(byte) }
        guard length <= Self.lengthLimit else { throw .tooLong(length) }

        guard length > 0 else { return nil }

        let body = try read(Int(length))
        guard body.count == Int(length) else { throw .truncated(expected: Int(length), received: body.count) }
        return body
    }

    /// Writes one reply.
    func send(_ message: String) throws(Failure) {
        var bytes: [UInt8] = []
        let length = UInt64(message.utf8.count)
        bytes.reserveCapacity(message.utf8.count + 8)
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: length >> shift)) }
        bytes.append(contentsOf: message.utf8)

        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { write(output, $0.baseAddress! + sent, $0.count - sent) }  // never empty
            if count >= 0 {
                sent += count
            } else if errno != EINTR {
                throw .system(operation: "write", code: errno)
            }
        }
    }

    /// Reads `count` bytes, or fewer if the stream ends before.
    private func read(_ count: Int) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        // The array grows as bytes arrive, so that a wrong length costs no memory.
        while bytes.count < count {
            let limit = min(count - bytes.count, max(bytes.count, 1 << 16))
            var received = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
                repeat {
                    // There is an address, because the limit is greater than 0.
                    received = systemRead(input, into: buffer.baseAddress!, atMost: limit)
                } while received < 0 && errno == EINTR
                filled = max(received, 0)
            }
            if received < 0 { throw .system(operation: "read", code: errno) }
            if received == 0 { break }
            bytes.append(contentsOf: chunk)
        }
        return bytes
    }
}

/// The C library's `read`, which `Transport.read` hides by its name.
private func systemRead(_ descriptor: Int32, into buffer: UnsafeMutableRawPointer, atMost count: Int) -> Int {
    read(descriptor, buffer, count)
}
