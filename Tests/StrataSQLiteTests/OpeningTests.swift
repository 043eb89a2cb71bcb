import Expectations
import Foundation
import Testing

@testable import StrataSQLite

@Suite("Opening and closing files")
struct OpeningTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func readOnly() -> PoolOptions {
        var options = PoolOptions()
        options.access = .readOnly
        return options
    }

    // MARK: - Files as they should be

    @Test func `a new file has the layout of the format, and every connection the defaults`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file())

        for connection in [
            try pool.read { $0 }, try pool.write { $0 },
        ] {
            try expectEqual(connection.pragma("journal_mode"), "wal")
            try expectEqual(connection.pragma("auto_vacuum"), "2")
            try expectEqual(connection.pragma("page_size"), "4096")
            try expectEqual(connection.pragma("synchronous"), "1")
            try expectEqual(connection.pragma("foreign_keys"), "0")
            try expectEqual(connection.pragma("temp_store"), "2")
            try expectEqual(connection.pragma("encoding"), "UTF-8")
        }
    }

    @Test func `pragmas override the defaults, some for new files only`() throws {
        var options = PoolOptions()
        options.pragmas = ["SYNCHRONOUS": "FULL", "page_size": "8192", "auto_vacuum": "NONE", "journal_mode": "delete"]
        var pool = try ConnectionPool.withNumbers(at: folder.file(), options: options)
        try expectEqual(pool.read { try $0.pragma("synchronous") }, "2")
        try expectEqual(pool.read { try $0.pragma("page_size") }, "8192")
        try expectEqual(pool.read { try $0.pragma("auto_vacuum") }, "0")
        try expectEqual(pool.read { try $0.pragma("journal_mode") }, "delete")
        expect(!pool.isWriteAheadLogged)
        try pool.close()

        options.pragmas = ["page_size": "4096"]
        pool = try ConnectionPool(.file(folder.file()), options: options)
        try expectEqual(pool.read { try $0.pragma("page_size") }, "8192")
        expect(pool.isWriteAheadLogged)
    }

    @Test(arguments: ["locking_mode": "exclusive", "journal_mode": "OFF"])
    func `pragmas that would break the pool are refused`(name: String, value: String) throws {
        var options = PoolOptions()
        options.pragmas = [name: value]
        let error = try failure { _ = try ConnectionPool(.file(folder.file()), options: options) }
        expect(error.code == .misuse && error.message.contains(name))
    }

    @Test func `closing leaves the file alone in its folder`() throws {
        let pool = try ConnectionPool.withNumbers(at: folder.file(), [1, 2])
        try expectEqual(pool.sum(), 3)
        try expectEqual(folder.names().count, 3)

        try pool.close()
        try pool.close()

        try expectEqual(folder.names(), ["store.sqlite"])
        try expectEqual(failure { _ = try pool.sum() }.code, .misuse)
        try expectEqual(failure { try pool.write { _ in } }.code, .misuse)
        try expectEqual(failure { _ = try pool.pinSnapshot() }.code, .misuse)
    }

    @Test func `letting go of a pool closes it`() throws {
        do {
            let pool = try ConnectionPool.withNumbers(at: folder.file(), [1, 2])
            try expectEqual(pool.sum(), 3)
        }
        try expectEqual(folder.names(), ["store.sqlite"])
    }

    @Test func `a path may hold anything`() throws {
        let path = folder.file("a ?b#c%20'ü;.sqlite")
        try ConnectionPool.withNumbers(at: path, [5]).close()
        let immutable = try Connection(path: path, access: .readOnly, isImmutable: true)
        try expectEqual(immutable.sum(), 5)
        try expectEqual(folder.names(), ["a ?b#c%20'ü;.sqlite"])
    }

    // MARK: - Files as they should not be

    @Test(arguments: [Connection.Access.readOnly, .readWrite])
    func `a file that is not there is not made`(access: Connection.Access) throws {
        var options = PoolOptions()
        options.access = access
        let error = try failure { _ = try ConnectionPool(.file(folder.file()), options: options) }
        expect(error.code == .cannotOpen && error.message.contains(folder.file()))
        try expect(folder.names().isEmpty)
    }

    @Test(arguments: [Connection.Access.readOnly, .readWriteCreate])
    func `a file that is no database is refused and left as it is`(access: Connection.Access) throws {
        let text = Data(String(repeating: "no database at all\n", count: 500).utf8)
        try text.write(to: URL(fileURLWithPath: folder.file()))
        var options = PoolOptions()
        options.access = access

        let error = try failure { _ = try ConnectionPool(.file(folder.file()), options: options) }

        expect(error.code == .notADatabase && error.message.contains("not an SQLite database"))
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: folder.file())), text)
    }

    @Test(arguments: [20, 50, 100, 4000, 4096, 8192, 12000])
    func `a file that was cut off is refused`(length: Int) throws {
        try ConnectionPool.withNumbers(at: folder.file(), Array(0..<5000)).close()
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
        try require(whole.count > 20_000)
        try whole.prefix(length).write(to: URL(fileURLWithPath: folder.file()))

        let error = try failure { _ = try ConnectionPool(.file(folder.file())) }

        expect([.notADatabase, .corrupt].contains(error.code))
        expect(error.operation == .open && error.message.contains(folder.file()))
    }

    @Test func `a garbled schema is refused`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1]).close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
        let place = try require(bytes.range(of: Data("CREATE TABLE".utf8)))
        bytes.replaceSubrange(place, with: Data("CREMATE TABL".utf8))
        try bytes.write(to: URL(fileURLWithPath: folder.file()))

        try expectEqual(failure { _ = try ConnectionPool(.file(folder.file())) }.code, .corrupt)
    }

    @Test func `garbled pages are found by the integrity check and throw when read`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), Array(0..<5000)).close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
        for index in bytes.indices.dropFirst(3 * 4096) { bytes[index] = 0xA5 }
        try bytes.write(to: URL(fileURLWithPath: folder.file()))
        let pool = try ConnectionPool(.file(folder.file()))

        try expectEqual(failure { _ = try pool.sum() }.code, .corrupt)
        try expect(!pool.read { try $0.integrityFaults() }.isEmpty)
    }

    @Test func `a folder is no database`() throws {
        try expectEqual(failure { _ = try ConnectionPool(.file(folder.path)) }.code, .cannotOpen)
    }

    // MARK: - Reading only

    @Test func `reading only changes no byte, and writes are refused`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1, 2]).close()
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
        let pool = try ConnectionPool(.file(folder.file()), options: readOnly())

        try expectEqual(pool.sum(), 3)
        try expectEqual(failure { try pool.write { _ in } }.code, .readOnly)
        try expectEqual(failure { try pool.checkpoint(.truncate) }.code, .readOnly)
        try expectEqual(failure { try pool.read { try $0.insert([1]) } }.code, .readOnly)
        try pool.close()
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: folder.file())), before)
    }

    @Test func `reading only sees the rows that are in the log alone`() throws {
        let (path, _) = try storeWithLog(named: "crashed.sqlite")
        let pool = try ConnectionPool(.file(path), options: readOnly())
        try expectEqual(pool.sum(), 6)
    }

    /// A copy of a store whose rows are in its log, as after a crash, and the size of that log.
    private func storeWithLog(named name: String) throws -> (path: String, logSize: Int) {
        let pool = try ConnectionPool.withNumbers(at: folder.file("live.sqlite"), [1, 2, 3])
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.file("live.sqlite") + suffix,
                toPath: folder.file(name) + suffix
            )
        }
        try pool.close()
        return (folder.file(name), try folder.size(name + "-wal"))
    }

    @Test func `reading leaves no log behind where there was none`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1, 2]).close()
        try expectEqual(folder.names(), ["store.sqlite"])
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
        do {
            let pool = try ConnectionPool(.file(folder.file()), options: readOnly())
            try expect(pool.sum() == 3 && pool.isWriteAheadLogged)
            try expectEqual(folder.names().count, 3)
            try pool.close()
            try expectEqual(folder.names(), ["store.sqlite"])
        }
        do {
            // This also holds if the pool is not closed.
            let pool = try ConnectionPool(.file(folder.file()), options: readOnly())
            try expectEqual(pool.sum(), 3)
        }
        try expectEqual(folder.names(), ["store.sqlite"])
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: folder.file())), before)
    }

    @Test func `a log that others use, or have written, stays when reading ends`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1, 2]).close()
        let reader = try ConnectionPool(.file(folder.file()), options: readOnly())
        let writer = try ConnectionPool(.file(folder.file()))
        try expectEqual(reader.sum(), 3)
        try reader.close()
        try expectEqual(folder.names().count, 3)
        try writer.write { try $0.run("INSERT INTO number VALUES (3)") }
        try expect(folder.size("store.sqlite-wal") > 0)
        let second = try ConnectionPool(.file(folder.file()), options: readOnly())
        try expectEqual(second.sum(), 6)
        try second.close()
        try expect(folder.size("store.sqlite-wal") > 0)
        try expectEqual(writer.sum(), 6)
    }

    #if os(Linux)
    /// Runs `body` on this thread with the file rights of an unprivileged user.
    ///
    /// With it a folder can be read-only to tests that run as root.
    private func withoutRights(_ body: () throws -> Void) throws {
        typealias SetFileUser = @convention(c) (UInt32) -> Int32
        let symbol = try require(dlsym(nil, "setfsuid"))
        let setFileUser = unsafeBitCast(symbol, to: SetFileUser.self)  // its C declaration
        let user = UInt32(bitPattern: setFileUser(65534))
        defer { _ = setFileUser(user) }
        try body()
    }

    private func readableOnly(_ body: () throws -> Void) throws {
        for name in try folder.names() { chmod(folder.file(name), 0o444) }
        chmod(folder.path, 0o555)
        defer { chmod(folder.path, 0o755) }
        try withoutRights(body)
    }

    @Test func `a store without a log in a folder that may not be written is read in place`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1, 2]).close()

        try readableOnly {
            let pool = try ConnectionPool(.file(folder.file()), options: readOnly())
            try expectEqual(pool.sum(), 3)
            expect(pool.opening.isImmutable && pool.opening.temporaryFolder == nil)
        }
        try expectEqual(folder.names(), ["store.sqlite"])
    }

    @Test func `a store with a log in a folder that may not be written is read from a copy, log and all`() throws {
        let (path, logSize) = try storeWithLog(named: "crashed.sqlite")
        try require(logSize > 0)
        try FileManager.default.removeItem(atPath: folder.file("live.sqlite"))
        var copy: String?

        try readableOnly {
            let pool = try ConnectionPool(.file(path), options: readOnly())
            try expectEqual(pool.sum(), 6)
            expect(!pool.opening.isImmutable)
            copy = pool.opening.temporaryFolder
            expectEqual(copy.map { FileManager.default.fileExists(atPath: $0) }, true)
        }
        expectEqual(copy.map { FileManager.default.fileExists(atPath: $0) }, false, "the copy goes with the pool")
        try expectEqual(folder.names(), ["crashed.sqlite", "crashed.sqlite-wal"])
        try expectEqual(folder.size("crashed.sqlite-wal"), logSize)
    }

    @Test func `a store that may not be read is refused`() throws {
        try ConnectionPool.withNumbers(at: folder.file(), [1]).close()
        chmod(folder.file(), 0o000)
        try withoutRights {
            let error = try failure { _ = try ConnectionPool(.file(folder.file()), options: readOnly()) }
            expectEqual(error.code, .cannotOpen)
        }
    }
    #endif
}
