import Foundation
import StrataSQL

// A backup is a file of lines. The first line is the title, and the second is a `BackupHead` as JSON. Then each table has a
// `BackupTable` as JSON, its rows in the text form of COPY, and a line with a backslash and a full stop. The last line is
// a `BackupEnd` as JSON, so that a file that was cut off or changed is recognised.

/// The facts about a store in a backup that are not rows.
package struct BackupHead: Codable, Sendable {
    static let title = "strata backup 1"
    /// The line after the rows of a table, as COPY has it; no row is equal to it.
    static let endOfRows = "\\."

    /// The state of a sequence.
    struct Keys: Codable {
        let last: Int64
        let isCalled: Bool
        /// Whether the keys are scattered; `nil` in backups that were made before there was such an order.
        var isScattered: Bool?
    }

    /// The form of the bookkeeping tables.
    let form: Int64
    /// The time at which the backup began, in UTC.
    let made: String
    let uuid: String
    /// The property list with the store's metadata.
    let metadata: Data
    /// The copy of the model that the store keeps; `nil` if it has none.
    package let model: Data?
    let hasForeignKeys: Bool
    /// The sequences, by name.
    let sequences: [String: Keys]

    /// The metadata in the form that the coordinator shows.
    ///
    /// - Throws: `fileReadCorruptFile` (259) if they cannot be read.
    package func metadataDictionary() throws -> [String: Any] { try storeMetadata().dictionary }

    /// The order of the keys of a table.
    func keyOrder(of table: SQLTable) -> KeyOrder {
        sequences[PostgreSQLSchema.sequence(table).raw]?.isScattered == true ? .scattered : .consecutive
    }

    func storeMetadata() throws -> StoreMetadata {
        guard let values = StoreMetadata.values(in: metadata), !uuid.isEmpty else {
            throw BackupFailure.damaged("its metadata cannot be read")
        }
        return StoreMetadata(dictionary: values, uuid: uuid)
    }
}

/// The line before the rows of a table.
struct BackupTable: Codable {
    let table: String
    let columns: [String]
}

/// The last line of a backup.
struct BackupEnd: Codable {
    /// The number of the rows of all tables.
    let rows: Int64
    /// The digest of all lines before this one.
    let digest: UInt64
}

/// A number that nearly always changes if a byte of a file changes (FNV-1a).
struct BackupDigest {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var value = value
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        self.value = value
    }
}

/// The contents of a backup in numbers.
package struct BackupFigures: Sendable, Equatable {
    package var objects: Int64 = 0
    package var transactions: Int64 = 0

    /// Adds the rows of a table.
    mutating func add(_ rows: Int64, of table: String, isHierarchy: Bool) {
        if isHierarchy { objects += rows }
        if table == "strata_transaction" { transactions += rows }
    }
}

/// The errors of backups.
enum BackupFailure {
    static func damaged(_ reason: String) -> CocoaError {
        CocoaError.described(
            .fileReadCorruptFile,
            userInfo: [NSLocalizedDescriptionKey: "The file is no complete backup of a PostgreSQL store: \(reason)."]
        )
    }

    /// The error for a failed call of the system.
    static func file(_ url: URL, _ number: Int32, writing: Bool) -> CocoaError {
        let code: CocoaError.Code =
            switch number {
            case EACCES, EPERM: writing ? .fileWriteNoPermission : .fileReadNoPermission
            case ENOSPC, EDQUOT: .fileWriteOutOfSpace
            case EEXIST: .fileWriteFileExists
            case ENOENT: writing ? .fileNoSuchFile : .fileReadNoSuchFile
            default: writing ? .fileWriteUnknown : .fileReadUnknown
            }
        let text =
            number == EEXIST
            ? "There is a file at \(url.path) already, which is not replaced."
            : "\(url.path) cannot be \(writing ? "written" : "read"): \(String(cString: strerror(number)))."
        return CocoaError.described(
            code,
            userInfo: [NSLocalizedDescriptionKey: text, NSFilePathErrorKey: url.path]
        )
    }
}
