import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import DebianIndex

@Suite("Tables, numbers and progress")
struct TerminalTests {
    @Test func `columns are as wide as their widest cell`() {
        var table = TextTable(.left("Name"), .right("Count"), .left("Note"))
        table.append("a", "1,234,567", "x")
        table.append("longer name", "8", "")

        expect(
            table.lines() == [
                "Name             Count  Note",
                "───────────  ─────────  ────",
                "a            1,234,567  x",
                "longer name          8",
            ]
        )
    }

    @Test func `a table without rows is its titles`() {
        expectEqual(TextTable(.left("A"), .right("B")).lines(), ["A  B", "─  ─"])
    }

    @Test func `missing cells stay empty and surplus ones are dropped`() {
        var table = TextTable(.left("A"), .left("B"))
        table.append("1")
        table.append("1", "2", "3")

        expectEqual(table.lines().suffix(2), ["1", "1  2"])
    }

    @Test func `long cells are cut, and line breaks cannot tear a row apart`() {
        var table = TextTable(.left("A"))
        table.append(String(repeating: "x", count: 500))
        table.append("two\r\nlines\u{1B}[31m")

        expectEqual(table.lines()[2].count, TextTable.widestCell)
        expect(table.lines()[2].hasSuffix("x…"))
        expectEqual(table.lines()[3], "two lines [31m")
    }

    @Test(arguments: [
        (0, "0"), (999, "999"), (1000, "1,000"), (63440, "63,440"), (1_234_567, "1,234,567"), (-1234, "-1,234"),
        (Int.min, "-9,223,372,036,854,775,808"),
    ])
    func `digits are grouped by three`(number: Int, text: String) {
        expectEqual(number.grouped, text)
    }

    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1536, "1.5 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"),
        (1_377_557_908, "1.4 GB"), (Int64.max, "9223372 TB"),
    ])
    func `sizes have one decimal at most`(bytes: Int64, text: String) {
        expectEqual(bytes.asByteCount, text)
    }

    @Test func `away from a terminal, progress is a line for each tenth`() {
        let output = Locked("")
        let bar = ProgressBar("Importing", total: 20, isTerminal: false) { text in output.withLock { $0 += text } }
        for _ in 0..<20 { bar.advance(by: 1) }
        bar.finish()

        let lines = output.withLock { $0.split(separator: "\n") }
        expectEqual(lines.count, 10)
        expectEqual(lines.first, "Importing 2 of 20 (10 %)")
        expectEqual(lines.last, "Importing 20 of 20 (100 %)")
    }

    @Test func `on a terminal, progress is one line that ends full`() {
        let output = Locked("")
        let bar = ProgressBar("Importing", total: 2000, isTerminal: true) { text in output.withLock { $0 += text } }
        bar.advance(by: 1500)
        bar.advance(by: 500)
        bar.finish()

        let text = output.withLock { $0 }
        expectEqual(text.filter { $0 == "\n" }.count, 1)
        expect(text.hasSuffix(String(repeating: "█", count: 32) + " 2,000 of 2,000\n"))
    }

    @Test func `nothing to do is all done`() {
        let output = Locked("")
        let bar = ProgressBar("Importing", total: 0, isTerminal: false) { text in output.withLock { $0 += text } }
        bar.advance(by: 0)

        expectEqual(output.withLock { $0 }, "Importing 0 of 0 (100 %)\n")
    }
}

@Suite("The importer's command line")
struct ImporterOptionsTests {
    @Test func `nothing given means the defaults`() throws {
        let options = try Options.parse([])

        expectEqual(options, Options())
        expect(options.contexts >= 1)
    }

    @Test(arguments: [
        ["--index", "I", "--store", "S", "--contexts", "3", "--limit", "5", "--search", "web server"],
        ["--index=I", "--store=S", "--contexts=3", "--limit=5", "--search=web server"],
    ])
    func `every option is read, in both forms`(arguments: [String]) throws {
        var expected = Options()
        expected.index = "I"
        expected.store = "S"
        expected.contexts = 3
        expected.limit = 5
        expected.search = "web server"

        try expectEqual(Options.parse(arguments), expected)
    }

    @Test func `a value may start with dashes and hold equal signs`() throws {
        try expectEqual(Options.parse(["--search=a=b"]).search, "a=b")
        try expectEqual(Options.parse(["-com.apple.CoreData.SQLDebug", "1", "--search", "x"]).search, "x")
        try expectEqual(Options.parse(["--search", "--x"]).search, "--x")
    }

    @Test(arguments: [
        (["--index"], "--index needs a value"),
        (["--contexts", "0"], "--contexts takes a number from 1 to 256, not “0”"),
        (["--limit=many"], "--limit takes a number from 1 to 1000, not “many”"),
        (["--fast"], "“--fast” is not an option"),
        (["file"], "“file” is not an option"),
    ])
    func `what makes no sense is named`(arguments: [String], message: String) {
        #expect(throws: UsageError(message)) { try Options.parse(arguments) }
    }
}
