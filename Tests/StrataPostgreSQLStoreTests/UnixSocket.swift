import Foundation

/// Sockets with a path, with which the proxies of the tests stand between a store and its server.
enum UnixSocket {
    /// A socket that accepts connections at a path; `nil` if there can be none.
    static func listening(at path: String) -> Int32? {
        made { socket in withAddress(path) { bind(socket, $0, $1) == 0 } && listen(socket, 64) == 0 }
    }

    /// A socket that is connected to the one at a path; `nil` if nobody listens there.
    static func connected(to path: String) -> Int32? {
        made { socket in withAddress(path) { connect(socket, $0, $1) == 0 } }
    }

    /// Receives as many bytes; `nil` if the other side has gone.
    static func receive(_ count: Int, from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let part = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress! + done, count - done, 0) }
            guard part > 0 else { return nil }
            done += part
        }
        return bytes
    }

    /// Sends bytes; false if the other side has gone.
    static func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let done = rest.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard done > 0 else { return false }
            rest = rest.dropFirst(done)
        }
        return true
    }

    /// Passes on all bytes until one side has gone.
    static func relay(from source: Int32, to target: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, send(Array(buffer[..<count]), to: target) else { return }
        }
    }

    private static func made(_ prepare: (Int32) -> Bool) -> Int32? {
        let new = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        if prepare(new) { return new }
        close(new)
        return nil
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}
