import Expectations
import Foundation
import StrataModelFiles
import Testing

@Suite("Files and folders of models")
struct ModelPackageTests {
    /// A folder for one test, which is removed with the last reference to it.
    private final class Scratch {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")

        deinit { try? FileManager.default.removeItem(at: folder) }

        func write(_ text: String, _ path: String) throws {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }

        func writeVersion(_ name: String) throws { try write(name, "Shop.xcdatamodeld/\(name).xcdatamodel/contents") }

        func writeCurrent(_ name: String) throws {
            try write(list("_XCCurrentVersionName", name), "Shop.xcdatamodeld/.xccurrentversion")
        }

        func list(_ key: String, _ text: String) -> String {
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict><key>\(key)</key><string>\(text)</string></dict></plist>
            """
        }

        func url(_ path: String) -> URL { folder.appendingPathComponent(path) }

        /// The text of the model that is read, and its file's name.
        func read(_ path: String = "Shop.xcdatamodeld") throws -> (text: String, file: String) {
            let contents = try ModelPackage.contents(at: url(path))
            return (String(decoding: contents.data, as: UTF8.self), contents.file.lastPathComponent)
        }

        /// The error about a model.
        ///
        /// Each error names the place.
        func fault(_ path: String = "Shop.xcdatamodeld") throws -> ModelError {
            let error = try require(expectThrows(ModelError.self) { try ModelPackage.contents(at: url(path)) })
            expect(error.file?.path.hasPrefix(folder.path) == true && error.message.contains(folder.path))
            return error
        }
    }

    private let scratch = Scratch()

    @Test func `the current version is read`() throws {
        for name in ["Shop", "Shop2", "Shop3"] { try scratch.writeVersion(name) }
        try scratch.writeCurrent("Shop2.xcdatamodel")
        try expectEqual(scratch.read().text, "Shop2")
        expectEqual(
            ModelPackage.versions(at: scratch.url("Shop.xcdatamodeld")).map(\.lastPathComponent),
            ["Shop.xcdatamodel", "Shop2.xcdatamodel", "Shop3.xcdatamodel"]
        )
        expectEqual(ModelPackage.versions(at: scratch.url("Shop.mom")), [scratch.url("Shop.mom")])
    }

    @Test func `the compiled version that the folder's list names is read`() throws {
        for name in ["Shop", "Shop 2"] { try scratch.write(name, "Shop.momd/\(name).mom") }
        try expectEqual(scratch.read("Shop.momd").text, "Shop")
        try scratch.write(
            scratch.list("NSManagedObjectModel_CurrentVersionName", "Shop 2"),
            "Shop.momd/VersionInfo.plist"
        )
        let (text, file) = try scratch.read("Shop.momd")
        expect(text == "Shop 2" && file == "Shop 2.mom")
    }

    @Test func `for an optimized model the compiled one beside it is read`() throws {
        try scratch.write("optimized", "Shop.omo")
        let fault = try scratch.fault("Shop.omo")
        expect(fault.kind == .unsupported && fault.reason.contains("with the .mom beside it"))

        try scratch.write("compiled", "Shop.mom")
        let (text, file) = try scratch.read("Shop.omo")
        expect(text == "compiled" && file == "Shop.mom")
    }

    @Test func `several versions without a mark are an error, unless one is named as the folder`() throws {
        try scratch.writeVersion("A")
        try expectEqual(scratch.read().text, "A")
        try scratch.writeVersion("B")
        let fault = try scratch.fault()
        expect(fault.kind == .malformed && fault.reason.contains("several versions"))
        try scratch.writeVersion("Shop")
        try expectEqual(scratch.read().text, "Shop")
        try scratch.write(scratch.list("other", "x"), "Shop.xcdatamodeld/.xccurrentversion")
        try expectEqual(scratch.read().text, "Shop", "a list that names none counts as none")
    }

    @Test func `a mark that names no version, or leads elsewhere, is an error, and so is a damaged one`() throws {
        try scratch.writeVersion("Shop")
        for name in ["Gone.xcdatamodel", "../../Shop.xcdatamodel", "", "/etc", "Shop", "."] {
            try scratch.writeCurrent(name)
            let fault = try scratch.fault()
            expect(fault.kind == .missing && fault.reason.contains("\"\(name)\""))
        }
        for text in ["nonsense", "<plist version=\"1.0\"><array/></plist>", "bplist00"] {
            try scratch.write(text, "Shop.xcdatamodeld/.xccurrentversion")
            try expectEqual(scratch.fault().kind, .malformed)
        }
    }

    @Test func `what is missing, empty, too large or of Xcode 3 is said to be so`() throws {
        try expectEqual(scratch.fault().kind, .missing)
        try scratch.write("", "Shop.xcdatamodeld/notes.txt")
        try expectEqual(scratch.fault().reason, "the folder has no model")
        try scratch.write("", "Shop.xcdatamodeld/Shop.xcdatamodel/layout")
        try expectEqual(scratch.fault().reason, "the folder has no file \"contents\"")
        try scratch.write("", "Shop.xcdatamodeld/Shop.xcdatamodel/elements")
        try expectEqual(scratch.fault().kind, .unsupported)
        try scratch.write("", "Shop.xcdatamodeld/Shop.xcdatamodel/contents")
        let empty = try scratch.fault()
        expect(empty.kind == .malformed && empty.reason.contains("empty"))
        let large = String(repeating: " ", count: ModelPackage.maximumSize + 1)
        try scratch.write(large, "Shop.xcdatamodeld/Shop.xcdatamodel/contents")
        try expectEqual(scratch.fault().kind, .tooLarge)
        try scratch.write(String(large.dropLast()), "Shop.xcdatamodeld/Shop.xcdatamodel/contents")
        try expectEqual(scratch.read().text.utf8.count, ModelPackage.maximumSize)
    }

    @Test func `a file without an end is too large`() {
        let endless = URL(fileURLWithPath: "/dev/zero")
        expectEqual(expectThrows(ModelError.self) { try ModelPackage.contents(at: endless) }?.kind, .tooLarge)
    }

    @Test func `a list of versions is read as it was written, and what is no hash in it is left out`() throws {
        let hashes = ["Shop": ["Item": Data(count: 32)], "Shop 2": ["Item": Data(repeating: 2, count: 32)]]
        let list = VersionList(currentVersion: "Shop 2", hashes: hashes)
        try scratch.write(String(decoding: list.data(), as: UTF8.self), "Shop.momd/VersionInfo.plist")
        let read = try require(VersionList(folder: scratch.url("Shop.momd")))
        expect(read.currentVersion == "Shop 2" && read.hashes == hashes)

        let text = "<dict><key>Shop</key><string>x</string></dict>"
        let odd = scratch.list("NSManagedObjectModel_VersionHashes", "x").replacing("<string>x</string>", with: text)
        try scratch.write(odd, "Odd.momd/VersionInfo.plist")
        expectEqual(VersionList(folder: scratch.url("Odd.momd"))?.hashes, [:])
        try scratch.write("no list", "None.momd/VersionInfo.plist")
        expect(VersionList(folder: scratch.url("None.momd")) == nil)
        expect(VersionList(folder: scratch.url("Missing.momd")) == nil)
        expect(VersionList(folder: scratch.url("Shop.xcdatamodeld")) == nil)
    }
}
