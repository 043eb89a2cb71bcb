/// A message of a client in PostgreSQL's protocol, as it passes through the proxies of the tests.
struct ClientMessage {
    let type: UInt8
    let body: [UInt8]
    /// The whole message.
    let bytes: [UInt8]

    /// Receives the next message; `nil` if the client has gone.
    init?(from client: Int32) {
        guard let head = UnixSocket.receive(5, from: client),
            let body = UnixSocket.receive(Self.length(head.dropFirst()) - 4, from: client)
        else { return nil }
        (type, self.body, bytes) = (head[0], body, head + body)
    }

    /// Receives the message that begins a session, or asks to cancel another one; it has no type.
    static func start(from client: Int32) -> [UInt8]? {
        guard let head = UnixSocket.receive(4, from: client),
            let body = UnixSocket.receive(length(head) - 4, from: client)
        else { return nil }
        return head + body
    }

    private static func length(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
