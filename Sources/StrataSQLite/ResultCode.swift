import CStrataSQLite

/// A result code of SQLite, primary (`SQLITE_BUSY`) or extended (`SQLITE_BUSY_RECOVERY`).
///
/// In a `switch` or `catch` pattern a primary code matches each of its extended codes.
package struct ResultCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// The code without its extension.
    package var primary: ResultCode {
        ResultCode(rawValue: rawValue & 0xFF)
    }

    package static func ~= (pattern: ResultCode, value: ResultCode) -> Bool {
        pattern == value || pattern == value.primary
    }

    // MARK: - Primary codes

    package static let error = ResultCode(rawValue: SQLITE_ERROR)
    package static let busy = ResultCode(rawValue: SQLITE_BUSY)
    package static let locked = ResultCode(rawValue: SQLITE_LOCKED)
    package static let abort = ResultCode(rawValue: SQLITE_ABORT)
    package static let noMemory = ResultCode(rawValue: SQLITE_NOMEM)
    package static let readOnly = ResultCode(rawValue: SQLITE_READONLY)
    package static let interrupt = ResultCode(rawValue: SQLITE_INTERRUPT)
    package static let inputOutput = ResultCode(rawValue: SQLITE_IOERR)
    package static let corrupt = ResultCode(rawValue: SQLITE_CORRUPT)
    package static let full = ResultCode(rawValue: SQLITE_FULL)
    package static let cannotOpen = ResultCode(rawValue: SQLITE_CANTOPEN)
    package static let schema = ResultCode(rawValue: SQLITE_SCHEMA)
    package static let constraint = ResultCode(rawValue: SQLITE_CONSTRAINT)
    package static let mismatch = ResultCode(rawValue: SQLITE_MISMATCH)
    package static let misuse = ResultCode(rawValue: SQLITE_MISUSE)
    package static let range = ResultCode(rawValue: SQLITE_RANGE)
    package static let notADatabase = ResultCode(rawValue: SQLITE_NOTADB)

    // MARK: - Extended codes
    // The C header has them as shifted sums, which are not imported as constants on all systems.

    package static let constraintUnique = ResultCode(rawValue: SQLITE_CONSTRAINT | (8 << 8))
    package static let constraintPrimaryKey = ResultCode(rawValue: SQLITE_CONSTRAINT | (6 << 8))
    package static let abortRollback = ResultCode(rawValue: SQLITE_ABORT | (2 << 8))
    package static let readOnlyMoved = ResultCode(rawValue: SQLITE_READONLY | (4 << 8))
    package static let inputOutputSync = ResultCode(rawValue: SQLITE_IOERR | (4 << 8))
}

extension ResultCode {
    /// The system operation that has failed, for an input or output error.
    ///
    /// SQLite itself has one text for all of them.
    package var inputOutputText: String? {
        guard primary == .inputOutput else { return nil }
        return switch rawValue >> 8 {
        case 1, 2, 7, 22, 32, 33: "the system could not read the file, or one beside it"
        case 3, 6, 10, 19, 29, 30: "the system could not write to the file, or to one beside it"
        case 4, 5: "the system could not bring to the disk what was written"
        case 8, 9, 14, 15, 20: "the system could not lock the file: its file system may not be able to"
        case 18, 21, 24: "the system could not share a part of the file in memory"
        case 12: "there is not enough memory"
        default: "the system could not work with the file, or with one beside it"
        }
    }

    /// Whether it is an input or output error whose cause may be a full disk.
    package var mayBeFullDisk: Bool {
        primary == .inputOutput && [3, 4, 5, 6, 10, 18, 19, 21, 24, 29, 30].contains(rawValue >> 8)
    }
}
