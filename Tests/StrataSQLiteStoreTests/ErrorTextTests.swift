import CoreData
import Expectations
import StrataSQLite
import Testing

@testable import StrataSQLiteStore

@Suite("Errors of the disk in words")
struct ErrorTextTests {
    private func error(_ code: Int32, _ path: String = "/tmp/store.sqlite") -> (raw: SQLiteError, shown: CocoaError) {
        let error = SQLiteError(code: ResultCode(rawValue: code), message: "disk I/O error", operation: .step)
        return (error, SQLiteBoundary.cocoaError(describing: error, while: .opening, at: URL(fileURLWithPath: path)))
    }

    @Test(
        arguments: [
            (266, "could not read the file"), (522, "could not read the file"), (3850, "could not lock the file"),
            (5386, "could not share a part of the file in memory"), (10, "could not work with the file"),
            (3082, "not enough memory"), (7, "not enough memory"),
        ] as [(Int32, String)]
    )
    func `an error says what the system could not do, with its number`(_ code: Int32, _ words: String) {
        let (raw, shown) = error(code)
        let text = shown.localizedDescription
        expect(text.hasPrefix("The store /tmp/store.sqlite cannot be opened: "), "\(text)")
        expect(text.contains(words) && text.contains("(SQLite error \(code))"), "\(text)")
        expectEqual(shown.code, .sqlite)
        if code != 7 { expect(raw.description.contains(words), "\(raw)") }
    }

    @Test(arguments: [778, 1034, 1546, 4874] as [Int32])
    func `what could not be written on a full volume is an error of the space`(_ code: Int32) {
        // A file system that has no room for anything.
        let shown = error(code, "/proc/store.sqlite").shown
        expectEqual(shown.code, .fileWriteOutOfSpace)
        expect(shown.localizedDescription.contains("no space left on the volume"), "\(shown.localizedDescription)")
        // An error of reading is none.
        expectEqual(error(266, "/proc/store.sqlite").shown.code, .sqlite)
    }
}
