import CoreData

#if canImport(CoreDataPostgreSQL)
import StrataPostgreSQL
#endif

/// Repeats work that has failed because the server of a store was away.
struct ServerPatience {
    /// Whether the store has a server.
    let isNeeded: Bool
    /// How many seconds a server may be away.
    private static let limit = 30.0

    /// Runs `body` until it does not fail because of the server.
    ///
    /// Work that was refused because the server was away has not happened, so it can be repeated.
    ///
    /// - Throws: Errors that have another reason, and those of a server that stays away.
    func trying<R>(_ body: () throws -> R) throws -> R {
        let end = ContinuousClock.now + .seconds(Self.limit)
        while true {
            do { return try body() } catch let error as CocoaError {
                guard isNeeded, ContinuousClock.now < end, Self.isOfServer(error) else { throw error }
                usleep(20_000)
            }
        }
    }

    private static func isOfServer(_ error: CocoaError) -> Bool {
        #if canImport(CoreDataPostgreSQL)
        guard error.userInfo[NSPersistentStoreSaveInDoubtKey] == nil,
            let cause = error.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError
        else { return false }
        return [.connection, .deadline, .rolledBack].contains(cause.kind)
        #else
        return false
        #endif
    }
}
