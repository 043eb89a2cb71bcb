import Foundation
import StrataRows

/// Reads the history of one store portion by portion, all of it as of the moment when the first one is read.
///
/// Transactions never change, and new ones come at the end, behind those that the query is about. In between, some may
/// be purged or picked out.
struct HistoryPortions {
    let store: any HistoryStore
    let query: HistoryQuery

    /// Transactions of a portion: no more has to be kept at a time.
    static let size = 500

    /// Transactions were purged or picked out between two portions.
    struct WasPurged: Error {}

    /// Calls `body` with one transaction after the other, until it gives false.
    ///
    /// - Throws: Errors of the store for the first portion, ``WasPurged`` if something of others is gone, and errors of
    ///   `body`.
    func forEach(_ body: (HistoryRecord) throws -> Bool) throws {
        var portion = query
        portion.limit = Self.size
        var read = 0
        // How many there are to be read; `nil` as long as one portion may do, which is of one moment.
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
            if records.count == Self.size, expected == nil { expected = try store.historyCount(query) }
            for record in records {
                read += 1
                guard try body(record) else {
                    guard read > Self.size else { return }
                    var rest = query
                    rest.after = record.transaction.number
                    return try require(read + store.historyCount(rest), expected)
                }
            }
            guard records.count == Self.size, let last = records.last else { return try require(read, expected) }
            portion.begin(after: last.transaction.place)
        }
    }

    /// Checks that no transaction was picked out before it could be read.
    private func require(_ count: Int, _ expected: Int?) throws {
        if let expected, count != expected { throw WasPurged() }
    }
}
