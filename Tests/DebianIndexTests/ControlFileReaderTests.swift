import Expectations
import Foundation
import TestSupport
import Testing

@testable import DebianIndex

@Suite("Reading Debian's control format")
struct ControlFileReaderTests {
    private static let stanza = """
        Package: 0ad
        Version: 0.0.26-3
        Installed-Size: 28591
        Maintainer: Debian Games Team <pkg-games-devel@lists.alioth.debian.org>
        Architecture: amd64
        Depends: 0ad-data (>= 0.0.26), 0ad-data (<= 0.0.26-3), libc6 (>= 2.34)
        Pre-Depends: dpkg (>= 1.15.6~)
        Recommends: fonts | ttf-fonts
        Description: Real-time strategy game
         of ancient warfare
        Homepage: https://play0ad.com/
        Tag: game::strategy, interface::graphical,
         uitoolkit::sdl
        Section: games
        Priority: optional
        Filename: pool/main/0/0ad/0ad_0.0.26-3_amd64.deb
        Size: 7891488
        SHA256: 3a2118df

        """

    @Test func `every field that is kept arrives`() throws {
        let items = try read(Self.stanza)

        var expected = PackageRecord(name: "0ad", version: "0.0.26-3", architecture: "amd64")
        expected.installedSize = 28591 * 1024
        expected.downloadSize = 7_891_488
        expected.maintainer = MaintainerAddress(
            name: "Debian Games Team",
            email: "pkg-games-devel@lists.alioth.debian.org"
        )
        expected.dependencies = ["0ad-data", "libc6", "dpkg"]
        expected.recommendations = ["fonts", "ttf-fonts"]
        expected.summary = "Real-time strategy game"
        expected.homepage = "https://play0ad.com/"
        expected.section = "games"
        expected.priority = "optional"
        expected.fileName = "pool/main/0/0ad/0ad_0.0.26-3_amd64.deb"
        expected.sha256 = "3a2118df"
        expectEqual(items, [.package(expected)])
    }

    @Test(arguments: [1, 2, 3, 7, 64, 1 << 20])
    func `the size of the pieces that a source gives makes no difference`(chunk: Int) throws {
        let text = Self.stanza + "\n" + minimal("b") + "\nbroken\n\n" + minimal("c")

        try expectEqual(read(text, chunk: chunk), read(text))
        try expectEqual(read(text, chunk: chunk).count, 4)
    }

    @Test func `blank lines before, between and after stanzas are no stanzas`() throws {
        let text = "\n \n\t\n" + minimal("a") + "\n\n   \n" + minimal("b") + "\n\n"

        try expectEqual(names(text), ["a", "b"])
    }

    @Test func `the last line needs no newline`() throws {
        try expectEqual(names("Package: a\nVersion: 1\nArchitecture: all"), ["a"])
    }

    @Test func `carriage returns before the newlines are no part of the text`() throws {
        try expectEqual(names("Package: a\r\nVersion: 1\r\nArchitecture: all\r\n\r\n" + minimal("b")), ["a", "b"])
    }

    @Test func `names of fields may be in any case, and values may touch the colon`() throws {
        try expectEqual(names("PACKAGE:a\nversion:1\narchitecTURE:   all  \n"), ["a"])
    }

    @Test func `a folded field is one value`() throws {
        let text = minimal("a") + "Depends: one,\n two (>= 1),\n\tthree\n"

        try expectEqual(records(text).first?.dependencies, ["one", "two", "three"])
    }

    @Test func `an empty file holds nothing`() throws {
        try expect(read("").isEmpty)
        try expect(read("\n\n\n").isEmpty)
    }

    @Test func `bytes that are no text become replacement characters`() throws {
        let source = DataSource(
            Data("Package: a\nVersion: 1\nArchitecture: all\nSection: x".utf8) + [0xFF, 0xFE, 0x0A]
        )
        let reader = ControlFileReader(source)

        guard case .package(let record) = try reader.next() else {
            Issue.record("There is a package")
            return
        }
        expectEqual(record.section, "x\u{FFFD}\u{FFFD}")
    }

    // MARK: - What is wrong with a stanza costs that stanza

    @Test(arguments: [
        ("no colon here\n", 2, MalformedStanza.Reason.neitherFieldNorContinuation),
        (": no name\n", 2, .neitherFieldNorContinuation),
        ("Two words: x\n", 2, .neitherFieldNorContinuation),
        ("Package: again\n", 2, .repeatedField("Package")),
        ("Size: many\n", 2, .notANumber(field: "Size")),
        ("Size: -1\n", 2, .notANumber(field: "Size")),
        ("Installed-Size: 9223372036854775807\n", 2, .notANumber(field: "Installed-Size")),
    ])
    func `a line that makes no sense is named and the next stanza read`(
        line: String,
        number: Int,
        reason: MalformedStanza.Reason
    ) throws {
        let items = try read("Package: a\n" + line + "Version: 1\nArchitecture: all\n\n" + minimal("b"))

        expectEqual(items.first, .malformed(MalformedStanza(line: number, reason: reason)))
        expectEqual(items.count, 2)
        try expectEqual(names("Package: a\n" + line + "Version: 1\nArchitecture: all\n\n" + minimal("b")), ["b"])
    }

    @Test(arguments: ["Package", "Version", "Architecture"])
    func `a stanza without what makes a package unique is malformed`(field: String) throws {
        let text = minimal("a").split(separator: "\n").filter { !$0.hasPrefix(field) }.joined(separator: "\n")

        try expectEqual(read(text), [.malformed(MalformedStanza(line: 1, reason: .missingField(field)))])
    }

    @Test func `a continuation without a field is malformed`() throws {
        let items = try read("\n\n continued\n" + minimal("a"))

        expectEqual(items, [.malformed(MalformedStanza(line: 3, reason: .neitherFieldNorContinuation))])
    }

    @Test func `a package that dpkg only remembers is not installed, not malformed`() throws {
        try expect(
            read("Package: gone\nStatus: unknown ok not-installed\nPriority: optional\n")
                == [.notInstalled(name: "gone")]
        )
    }

    @Test func `what goes on for too long is cut, and reading goes on`() throws {
        let text = "Package: a\nNoise: " + String(repeating: "x", count: 500) + "\n\n" + minimal("b")
        let reader = ControlFileReader(MemorySource(text), chunk: 16, longestStanza: 100)
        var items: [ControlFileReader.Item] = []
        while let item = try reader.next() { items.append(item) }

        expectEqual(items.first, .malformed(MalformedStanza(line: 1, reason: .tooLong)))
        expectEqual(items.last, .package(PackageRecord(name: "b", version: "1", architecture: "all")))
    }

    @Test func `a complaint says where and what`() {
        expect(
            MalformedStanza(line: 12, reason: .missingField("Version")).description
                == "line 12: a stanza without a Version field"
        )
    }

    // MARK: - Helpers

    private func minimal(_ name: String) -> String {
        "Package: \(name)\nVersion: 1\nArchitecture: all\n"
    }

    private func read(_ text: String, chunk: Int = 4096) throws -> [ControlFileReader.Item] {
        let reader = ControlFileReader(MemorySource(text), chunk: chunk)
        var items: [ControlFileReader.Item] = []
        while let item = try reader.next() { items.append(item) }
        return items
    }

    private func records(_ text: String) throws -> [PackageRecord] {
        try read(text).compactMap { if case .package(let record) = $0 { record } else { nil } }
    }

    private func names(_ text: String) throws -> [String] {
        try records(text).map(\.name)
    }
}

/// Bytes that need not be text, in one piece.
private final class DataSource: ByteSource, @unchecked Sendable {
    // @unchecked Sendable: a test reads it from one task.
    private var rest: Data

    init(_ data: Data) {
        rest = data
    }

    func read(upToCount count: Int) -> Data {
        defer { rest = Data() }
        return rest
    }
}
