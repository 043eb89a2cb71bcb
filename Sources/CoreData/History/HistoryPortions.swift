import Foundation
import StrataRows

/// Reads the history of one store portion by portion, all of it as of the moment when the first one is read.
///
/// Transactions never change, and new ones come at the end. What can happen in between is that some are purged.
struct HistoryPortions {
    let store: any HistoryStore
    let query: HistoryQuery

    /// Transactions of a portion: no more has to be kept at a time.
    static let size = 500

    /// Somebody has purged transactions between two portions.
    struct WasPurged: Error {}

    /// Calls `body` with one transaction after the other, until it gives false.
    ///
    /// - Throws: What the store throws for the first portion, ``WasPurged`` for others of which something is gone, and what
    ///   `body` throws.
    func forEach(_ body: (HistoryRecord) throws -> Bool) throws {
        var portion = query
        portion.limit = Self.size
        portion.until = try store.lastHistoryNumber()
        var isFirst = true
        while true {
            let records: [HistoryRecord]
            do {
                records = try store.history(portion)
            } catch let error as CocoaError
                where !isFirst && error.code.rawValue == NSPersistentHistoryTokenExpiredError
            {
                throw WasPurged()
            }
            for record in records { guard try body(record) else { return } }
            guard records.count == Self.size, let last = records.last else { return }
            portion.begin(after: last.transaction.place)
            isFirst = false
        }
    }
}
