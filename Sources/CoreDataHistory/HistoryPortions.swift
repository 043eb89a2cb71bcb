import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows

/// Reads the history of one store portion by portion, all as of the moment when the first portion is read.
///
/// Transactions never change, and new ones are added at the end, after those that the query asks for. Between two
/// portions, some transactions may be purged or deleted individually.
struct HistoryPortions {
    let store: any HistoryStore
    let query: HistoryQuery

    /// Signals that transactions were purged or deleted individually between two portions.
    struct WasPurged: Error {}

    /// Calls `body` with one transaction after the other, until it returns false.
    ///
    /// - Throws: Errors of the store for the first portion, ``WasPurged`` if transactions disappeared meanwhile, and
    ///   errors of `body`.
    func forEach(_ body: (HistoryRecord) throws -> Bool) throws {
        var portion = query
        portion.limit = WorkSize.historyPortion
        var read = 0
        // The number of transactions to read. It is `nil` until a second portion is needed, because one portion has the
        // state of one moment.
        var expected: Int?
        while true {
            let records: [HistoryRecord]
            do {
                records = try store.history(portion)
            } catch let error as CocoaError
                where expected != nil && error.code.rawValue == NSPersistentHistoryTokenExpiredError
            {
                throw WasPurged()
            }
            if records.count == WorkSize.historyPortion, expected == nil { expected = try store.historyCount(query) }
            for record in records {
                read += 1
                guard try body(record) else {
                    guard read > WorkSize.historyPortion else { return }
                    var rest = query
                    rest.after = record.transaction.number
                    return try require(read + store.historyCount(rest), expected)
                }
            }
            guard records.count == WorkSize.historyPortion, let last = records.last else {
                return try require(read, expected)
            }
            portion.begin(after: last.transaction.place)
        }
    }

    /// Checks that no transaction was deleted before it could be read.
    private func require(_ count: Int, _ expected: Int?) throws {
        if let expected, count != expected { throw WasPurged() }
    }
}
