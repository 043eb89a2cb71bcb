import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@Suite("PostgreSQL servers that accept no more sessions", .enabled(if: Server.isThere))
struct ServerRoomTests {
    /// A server that accepts few sessions, behind a proxy that counts the attempts to connect.
    private final class FullServer: Sendable {
        let server: PrivateServer
        let proxy: FaultProxy
        private let sessions = Locked<[Connection]>([])
        /// A session that always exists.
        private let observer: Connection

        init() throws {
            server = try PrivateServer(["max_connections=6", "superuser_reserved_connections=0"])
            proxy = try FaultProxy(to: server.url)
            observer = try server.connection()
        }

        deinit { proxy.close() }

        /// Opens as many sessions as the server still accepts.
        func fill() throws {
            let target = try ConnectionTarget(server.url)
            while true {
                do {
                    let session = try Connection.open(target, timeout: 60)
                    sessions.withLock { $0.append(session) }
                } catch let error as PostgreSQLError where error.sqlState == "53300" {
                    return
                }
            }
        }

        /// Ends the sessions that come through the proxy, and takes their places.
        func expel() throws {
            proxy.setOpen(false)
            let own = sessions.withLock { $0.count } + 1
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            try waitUntil { try require(observer.query(sql).firstInt64) <= Int64(own) }
            try fill()
            proxy.setOpen(true)
        }

        /// Closes one session, so that there is room for another.
        func leave() { sessions.withLock { _ = $0.popLast() } }

        /// Waits until a client was refused, and has tried again.
        func waitForCallers() throws {
            let known = proxy.callers.withLock { $0 }
            try waitUntil { proxy.callers.withLock { $0 } >= known + 3 }
        }

        func stack(timeout: Double) throws -> ServerStack {
            try ServerStack(proxy.url, [NSPersistentStoreTimeoutOption: timeout])
        }
    }

    private func sqlState(_ error: CocoaError?) -> String? {
        (error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState
    }

    @Test func `adding a store waits until there is room, and after the time-out reports that there was none`() throws {
        let full = try FullServer()
        try full.fill()
        let error = expectThrows(CocoaError.self) { try full.stack(timeout: 1) }
        expectEqual(error?.code, .persistentStoreOpen)
        expectEqual(sqlState(error), "53300")
        let opening = Errand { try full.stack(timeout: 300) }
        try full.waitForCallers()
        full.leave()
        let stack = try opening.wait()
        try stack.insert("Rome")
        try expectEqual(stack.cities(), ["Rome"])
    }

    @Test func `adding a store that finds no room, and then gets no answer, reports the lack of room`() throws {
        let full = try FullServer()
        try full.fill()
        let known = full.proxy.callers.withLock { $0 }
        let opening = Errand { try full.stack(timeout: 10) }
        // When a second attempt comes, the first one was refused.
        try waitUntil { full.proxy.callers.withLock { $0 } > known + 1 }
        full.proxy.isSilent.withLock { $0 = true }
        let error = expectThrows(CocoaError.self) { try opening.wait() }
        expectEqual(error?.code, .persistentStoreOpen)
        expectEqual(sqlState(error), "53300")
    }

    @Test func `reads and saves wait until there is room, and after the time-out report that there was none`()
        throws
    {
        let full = try FullServer()
        let (patient, hasty) = (try full.stack(timeout: 300), try full.stack(timeout: 1))
        try patient.insert("Rome")
        try full.expel()
        let reading = expectThrows(CocoaError.self) { try Cities.fetched(hasty.context()) }
        expectEqual(reading?.code, .persistentStoreOperation)
        expectEqual(sqlState(reading), "53300")
        let context = hasty.context()
        context.performAndWait {
            _ = context.insert("City", ["name": "Oslo"])
            let saving = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(saving?.code, .persistentStoreSave)
            expectEqual(sqlState(saving), "53300")
            // The context has lost nothing.
            expect(context.hasChanges)
        }

        let patientReading = Errand { try patient.cities() }
        try full.waitForCallers()
        full.leave()
        try expectEqual(patientReading.wait(), ["Rome"])
        try full.expel()
        let saving = Errand { try patient.insert("Bern") }
        try full.waitForCallers()
        full.leave()
        try saving.wait()
        full.leave()
        try context.performAndWait { try context.save() }
        try expectEqual(hasty.cities(), ["Bern", "Oslo", "Rome"])
    }
}
