import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// A server that shows a certificate, and whose port needs a password.
///
/// It runs on this machine, but its name does not say so. Names decide whether a server has to prove its identity.
private final class CertifiedServer {
    static let name = "db.strata.example"
    private static let password = "correct horse"

    private let server: PrivateServer
    private let port: Int
    /// The authority that has signed the certificate, and another one that has not.
    let root: String
    let otherRoot: String
    private let files: String

    init() throws {
        files = PrivateServer.newFolder()
        let other = files + "/other"
        try PrivateServer.run(["certificates", files, Self.name], [:])
        try PrivateServer.run(["certificates", other, Self.name], [:])
        (root, otherRoot) = (files + "/root.crt", other + "/root.crt")
        try Self.write("\(files)/hba.conf", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        try Self.write("\(files)/passwords", "*:*:*:guide:\(Self.password)\n", mode: 0o600)
        let settings = [
            "ssl=on", "ssl_cert_file=\(files)/server.crt", "ssl_key_file=\(files)/server.key",
            "hba_file=\(files)/hba.conf",
        ]
        (server, port) = try Self.start(settings)
        try server.connection().command(
            "CREATE ROLE guide LOGIN PASSWORD '\(Self.password)'; GRANT CREATE ON DATABASE strata TO guide"
        )
    }

    deinit { try? FileManager.default.removeItem(atPath: files) }

    private static func write(_ path: String, _ text: String, mode: Int = 0o644) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    /// Starts a server on a free port.
    ///
    /// If another program takes the port meanwhile, then it tries again.
    private static func start(_ settings: [String]) throws -> (PrivateServer, Int) {
        for _ in 0..<5 {
            let port = try freePort()
            if let server = try? PrivateServer(settings, port: port) { return (server, port) }
        }
        let port = try freePort()
        return (try PrivateServer(settings, port: port), port)
    }

    private static func freePort() throws -> Int {
        let door = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(door) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(door, $0, size) == 0 && getsockname(door, $0, &size) == 0
            }
        }
        try require(isBound)
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// The URL of the store on it for a host name, with further parameters.
    func url(_ host: String = CertifiedServer.name, _ parameters: String...) throws -> URL {
        let rest = ["hostaddr=127.0.0.1", "schema=shop", "passfile=\(files)/passwords"] + parameters
        return try require(
            URL(string: "postgresql://guide@\(host):\(port)/strata?\(rest.joined(separator: "&"))")
        )
    }

    /// Whether the traffic of a connection is encrypted.
    func isEncrypted(_ url: URL) throws -> Bool {
        let connection = try Connection.open(ConnectionTarget(url), timeout: 60)
        return try connection.query("SELECT 1 FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl").rowCount == 1
    }
}

@Suite("PostgreSQL stores on servers that show a certificate", .enabled(if: Server.isThere))
struct TLSTests {
    @Test func `a server far away is believed by the right certificate, and then serves as any other`() throws {
        let server = try CertifiedServer()
        let url = try server.url(CertifiedServer.name, "sslrootcert=\(server.root)")
        let stack = try ServerStack(url, history: true)
        try stack.insert("Rome")
        // The names are larger than the pieces in which data is encrypted, in both directions.
        let long = (0..<40).map { String(repeating: "\($0) ", count: 20_000 + $0) }
        for name in long { try stack.insert(name) }
        try expectEqual(ServerStack(url).cities(), (long + ["Rome"]).sorted())
        try expect(server.isEncrypted(url))
    }

    @Test func `a server far away is refused if its certificate is not trusted, or is another one's`() throws {
        let server = try CertifiedServer()
        let refusals = [
            // The signing authority is unknown.
            (try server.url(CertifiedServer.name, "sslrootcert=\(server.otherRoot)"), "certificate verify failed"),
            (try server.url("other.strata.example", "sslrootcert=\(server.root)"), "does not match host name"),
            // Without a list of authorities no server is trusted.
            (try server.url(CertifiedServer.name, "sslrootcert=/nowhere/root.crt"), "/nowhere/root.crt"),
        ]
        for (url, reason) in refusals {
            let error = expectThrows(CocoaError.self) { try ServerStack(url) }
            expectEqual(error?.code, .persistentStoreOpen)
            let text = error?.localizedDescription ?? ""
            expect(text.contains(reason), "\(text)")
            // The password was not sent, and no text contains it.
            expect(!text.contains("horse"), "\(text)")
        }
    }

    @Test func `the URL may say how a server proves its identity`() throws {
        let server = try CertifiedServer()
        // The connection is encrypted, and accepts any server.
        let encrypted = try server.url("other.strata.example", "sslmode=require")
        try ServerStack(encrypted).insert("Rome")
        try expect(server.isEncrypted(encrypted))
        let plain = try server.url("other.strata.example", "sslmode=disable")
        try expectEqual(ServerStack(plain).cities(), ["Rome"])
        try expect(!server.isEncrypted(plain))
        // The authority is checked, but not the name.
        let certified = try server.url("other.strata.example", "sslmode=verify-ca", "sslrootcert=\(server.root)")
        try expectEqual(ServerStack(certified).cities(), ["Rome"])
        let foreign = try server.url(CertifiedServer.name, "sslmode=verify-ca", "sslrootcert=\(server.otherRoot)")
        expectEqual(expectThrows(CocoaError.self) { try ServerStack(foreign) }?.code, .persistentStoreOpen)
    }

    @Test func `a server looks every minute whether the machine of a silent client is still there`() throws {
        let server = try CertifiedServer()
        func idle(_ parameters: String...) throws -> String {
            let url = try server.url("localhost")
            let place = ([url.absoluteString] + parameters).joined(separator: "&")
            let pool = OpenPostgreSQLStore.pool(try ConnectionTarget(require(URL(string: place))), size: 1, timeout: 60)
            defer { pool.close() }
            return try pool.withConnection { connection in
                try ["idle", "interval", "count"]
                    .map { try connection.command("SHOW tcp_keepalives_\($0)")[0].string(0) }.joined(separator: " ")
            }
        }
        try expectEqual(idle(), "60 10 3")
        // A shorter interval in the URL keeps its effect.
        try expectEqual(idle("options=-c%20tcp_keepalives_idle%3D30"), "30 10 3")
    }

    @Test func `a server of this machine need not prove its identity`() throws {
        let server = try CertifiedServer()
        let url = try server.url("localhost")
        try ServerStack(url).insert("Rome")
        try expectEqual(ServerStack(url).cities(), ["Rome"])
    }
}

// The tests run one after the other, since there is only one file.
@Suite("PostgreSQL stores by the name of a service", .serialized, .enabled(if: Server.isThere))
struct ServiceFileTests {
    private static let file = ProcessInfo.processInfo.environment["PGSERVICEFILE"]

    /// Writes the settings of the service, which libpq reads when the URL names it.
    private func write(_ host: String, _ others: String...) throws {
        let text = (["[strata-shop]", "host=\(host)", "dbname=strata"] + others).joined(separator: "\n") + "\n"
        try text.write(toFile: require(Self.file), atomically: true, encoding: .utf8)
    }

    private func write(_ password: String, host: String) throws {
        try write(host, "user=guide", "password=\(password)")
    }

    @Test func `the writable one of a service's hosts is found, and none is waited for in vain`()
        throws
    {
        let writable = try PrivateServer()
        let follower = try PrivateServer()
        try follower.connection().command("ALTER DATABASE strata SET default_transaction_read_only TO on")
        let silent = try FaultProxy(to: writable.url)
        defer { silent.close() }
        silent.isSilent.withLock { $0 = true }
        let url = try require(URL(string: "postgresql:///?service=strata-shop&schema=shop"))
        try write([silent.folder, follower.folder, writable.folder].joined(separator: ","), "user=strata")
        let stack = try ServerStack(url, [NSPersistentStoreTimeoutOption: 4])
        try stack.insert("Rome")
        try expectEqual(writable.text("SELECT name FROM shop.city"), "Rome")
        // The file is read again for each connection.
        try write([follower.folder, writable.folder].joined(separator: ","), "user=strata")
        try expectEqual(ServerStack(url).cities(), ["Rome"])
        expectEqual(silent.callers.withLock { $0 }, 1)
    }

    @Test func `a server far away has to prove its identity, also if a service names it`() throws {
        let url = try require(URL(string: "postgresql:///?service=strata-shop&schema=shop"))
        // The environment's mode would count.
        guard ProcessInfo.processInfo.environment["PGSSLMODE"] == nil else { return }
        func mode(_ host: String, _ others: String...) throws -> String? {
            try write(host, others.joined(separator: "\n"))
            return try Connection.verification(of: ConnectionTarget(url))
        }
        try expectEqual(mode("db.example.org"), "verify-full")
        try expectEqual(mode("localhost,db.example.org"), "verify-full")
        try expectEqual(mode("localhost", "hostaddr=192.0.2.1"), "verify-full")
        try expectEqual(mode("db.example.org", "sslmode=require"), "require")
        try expectEqual(mode("/tmp"), "prefer")
    }

    @Test func `a server far away has to prove its identity, also if the environment names it`() async {
        await #expect(processExitsWith: .success) {
            endInTime()
            unsetenv("PGSSLMODE")
            setenv("PGHOST", "db.example.org", 1)
            let target = try ConnectionTarget(require(URL(string: "postgresql:///shop")))
            try require(Connection.verification(of: target) == "verify-full")
        }
    }

    @Test func `the password of a service lets in, and is in no error`() throws {
        let files = PrivateServer.newFolder()
        try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: files) }
        try "local all guide scram-sha-256\nlocal all all trust\n"
            .write(toFile: files + "/hba.conf", atomically: false, encoding: .utf8)
        let server = try PrivateServer(["hba_file=\(files)/hba.conf"])
        try server.connection().command(
            "CREATE ROLE guide LOGIN PASSWORD 'correct-horse'; GRANT CREATE ON DATABASE strata TO guide"
        )
        let url = try require(URL(string: "postgresql:///?service=strata-shop&schema=shop"))
        try write("correct-horse", host: server.folder)
        // The test stops the server below, and a save waits for it no longer than this.
        let stack = try ServerStack(url, history: true, [NSPersistentStoreTimeoutOption: 2.0])
        try stack.insert("Rome")
        try expectEqual(ServerStack(url).cities(), ["Rome"])
        try expectEqual(server.text("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'shop'"), "guide")

        func refusal(_ body: () throws -> Void) -> CocoaError? {
            let error = expectThrows(CocoaError.self) { try body() }
            // The text of the error as it is printed, with all underlying errors.
            var text = ""
            dump(error, to: &text)
            text += "\(String(describing: error)) \(error?.localizedDescription ?? "") \(error?.userInfo ?? [:])"
            expect(!text.contains("horse") && !text.contains("battery"), "\(text)")
            return error
        }
        try write("battery-staple", host: server.folder)
        let wrong = refusal { _ = try ServerStack(url) }
        expectEqual(wrong?.code, .fileReadNoPermission)
        expectEqual((wrong?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "28P01")
        try write("correct-horse", host: "/nowhere")
        expectEqual(refusal { _ = try ServerStack(url) }?.code, .persistentStoreOpen)
        // The server refuses a new store, and a statement of a store that is open.
        try write("correct-horse", host: server.folder)
        try server.connection().command("REVOKE ALL ON SCHEMA shop FROM guide; ALTER SCHEMA shop OWNER TO strata")
        expectEqual(refusal { _ = try ServerStack(url) }?.code, .fileReadNoPermission)
        try server.halt()
        expectEqual(refusal { try stack.insert("Oslo") }?.code, .persistentStoreSave)
    }
}
