import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// The record of a store's answer to a check.
///
/// An addition to Apple's API.
///
/// See <doc:Operating>.
///
/// ```swift
/// for check in try await coordinator.check(within: .seconds(60)) { print(check.name, check.duration, check.freeBytes ?? 0) }
/// ```
public struct StoreCheck: Sendable {
    /// The UUID of the store.
    public let identifier: String?
    /// The file name, or the type of a store that lies in no file.
    public let name: String
    /// The duration of the check.
    public let duration: Duration
    /// The number of free bytes on the file's volume; `nil` if the store lies in no file, or it is not known.
    public let freeBytes: Int?
}

extension NSPersistentStoreCoordinator {
    /// Checks whether the stores answer; for the health check of a server.
    ///
    /// It reads one row of each store's metadata, on a connection of its pool, so it fails if no connection is free or
    /// the file is missing or damaged. It also fails if a SQLite or binary store may be written to and lies on a volume
    /// without free space (less than 64 KiB), because saves fail there. It takes no write lock. It returns or throws by
    /// the time limit, whatever the stores do. May be called on any thread.
    ///
    /// ```swift
    /// // GET /health
    /// do { print(try await coordinator.check(within: .seconds(60)).map(\.name)) } catch { print(503) }
    /// ```
    ///
    /// An addition to Apple's API.
    ///
    /// - Parameter limit: The maximum time for all stores together.
    /// - Returns: A value for each store.
    /// - Throws: `persistentStoreTimeout` (134090) at the limit, `persistentStoreOperation` (134070) after
    ///   ``close(within:)`` or if there are no stores, `fileWriteOutOfSpace` (640) for a volume without free space,
    ///   like a save there, and errors of reading.
    public func check(within limit: Duration = .seconds(1)) async throws -> [StoreCheck] {
        if isClosed { throw closedError }
        let stores = openStores
        guard !stores.isEmpty else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The coordinator has no stores."]
            ).marked(.environment)
        }
        let hasAnswered = FirstAnswer()
        let end = ContinuousClock.now + limit
        return try await withAnswer { (answer: @escaping @Sendable (Result<[StoreCheck], any Error>) -> Void) in
            DispatchQueue.global().asyncAfter(deadline: .now() + limit.inSeconds) {
                if hasAnswered.isFirst { answer(.failure(Self.checkTimedOut(limit))) }
            }
            runOnSeparateThread {
                let result = Result { try stores.map { try $0.check(until: end) } }
                if hasAnswered.isFirst { answer(result) }
            }
        }.get()
    }

    private static func checkTimedOut(_ limit: Duration) -> CocoaError {
        CocoaError.described(
            .persistentStoreTimeout,
            userInfo: [NSLocalizedDescriptionKey: "The stores have not answered within \(limit)."]
        )
    }
}

/// Lets the first caller through, and no later one.
private final class FirstAnswer: Sendable {
    private let wasAsked = AtomicCell(false)

    var isFirst: Bool { !wasAsked.exchange(true, ordering: .acquiringAndReleasing) }
}

extension OpenStore {
    fileprivate func check(until end: ContinuousClock.Instant) throws -> StoreCheck {
        let start = ContinuousClock.now
        try rows.check(timeout: max((end - start).inSeconds, 0.001))
        var free: Int?
        if let url = store.url, url.path != "/dev/null", FileManager.default.fileExists(atPath: url.path) {
            let attributes = try? FileManager.default.attributesOfFileSystem(
                forPath: url.deletingLastPathComponent().path
            )
            free = (attributes?[.systemFreeSize] as? NSNumber)?.intValue
            try store.requireRoom(free: free, of: (attributes?[.systemSize] as? NSNumber)?.intValue)
        }
        return StoreCheck(
            identifier: store.identifier,
            name: store.url.flatMap { $0.path == "/dev/null" ? nil : $0.lastPathComponent } ?? store.type,
            duration: .now - start,
            freeBytes: free
        )
    }
}

extension NSPersistentStore {
    /// Refuses a volume on which a save of a binary store fails, because each save writes a new file.
    ///
    /// The engine of a SQLite store checks its volume itself.
    ///
    /// - Parameters:
    ///   - free: The number of free bytes on the volume; `nil` if it is not known.
    ///   - size: The total number of bytes of the volume; 0 or `nil` if it is not known.
    /// - Throws: `fileWriteOutOfSpace` (640).
    func requireRoom(free: Int?, of size: Int?) throws {
        guard type == NSBinaryStoreType, !isReadOnly, let url, let free, free < 64 << 10, let size, size > 0 else {
            return
        }
        throw CocoaError.described(
            .fileWriteOutOfSpace,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.path) cannot be saved: there is no space left on the volume (\(free) bytes are free).",
                NSFilePathErrorKey: url.path,
            ]
        ).marked(.environment)
    }
}
