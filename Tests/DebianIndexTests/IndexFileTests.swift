import Expectations
import Foundation
import TestSupport
import Testing

@testable import DebianIndex

@Suite("Finding package indexes")
struct IndexFileTests {
    @Test(arguments: [
        "deb.debian.org_debian_dists_bookworm_main_binary-amd64_Packages",
        "deb.debian.org_debian_dists_bookworm_main_binary-amd64_Packages.lz4",
        "x_Packages.gz",
    ])
    func `package lists are known by their names`(name: String) {
        expect(IndexFile.isPackageList(name))
    }

    @Test(arguments: ["x_InRelease", "Packages", "x_Packages.diff", "x_Packages.gz.tmp", "x_PackagesOld", "lock", ""])
    func `other files are left alone`(name: String) {
        expect(!IndexFile.isPackageList(name))
    }

    @Test func `apt's lists come before what dpkg has installed`() throws {
        try withFolder { folder in
            let lists = folder + "/lists"
            let status = folder + "/status"
            try FileManager.default.createDirectory(atPath: lists, withIntermediateDirectories: true)
            try "".write(toFile: status, atomically: true, encoding: .utf8)

            try expectEqual(IndexFile.onThisMachine(lists: lists, status: status).map(\.path), [status])

            for name in ["b_Packages", "a_Packages.lz4", "a_InRelease"] {
                try "".write(toFile: lists + "/" + name, atomically: true, encoding: .utf8)
            }
            try expect(
                IndexFile.onThisMachine(lists: lists, status: status).map(\.path)
                    == [lists + "/a_Packages.lz4", lists + "/b_Packages"]
            )
        }
    }

    @Test func `a machine without any index says so`() {
        #expect(throws: IndexError.noIndex) {
            try IndexFile.onThisMachine(lists: "/nowhere/lists", status: "/nowhere/status")
        }
    }

    @Test func `a file that is missing or a folder is named in the error`() throws {
        expectThrows(IndexError.self) { try IndexFile(path: "/nowhere/Packages") }
        try withFolder { folder in
            #expect(throws: IndexError.cannotRead(path: folder, reason: "it is a folder")) {
                _ = try IndexFile(path: folder)
            }
        }
    }

    @Test func `a survey counts packages and gathers what they point at`() throws {
        try withFolder { folder in
            let path = folder + "/Packages"
            let text = """
                Package: a
                Version: 1
                Architecture: all
                Section: games
                Maintainer: Jane <j@x>
                Depends: b | c
                Recommends: d

                rubbish

                Package: b
                Version: 1
                Architecture: all
                Section: games
                Maintainer: J. Doe <J@X>

                """
            try text.write(toFile: path, atomically: true, encoding: .utf8)

            let survey = try Survey(of: [IndexFile(path: path)])

            expectEqual(survey.packages, 2)
            expectEqual(survey.malformed, 1)
            expectEqual(survey.complaints, ["\(path), line 9: neither a field nor the continuation of one"])
            expectEqual(survey.sections, ["games"])
            expectEqual(survey.maintainers, ["j@x": "Jane"])
            expectEqual(survey.names, ["b", "c", "d"])
        }
    }

    @Test(arguments: [("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz")])
    func `a compressed index is read like a plain one, and one that breaks off is an error`(
        program: String,
        suffix: String
    ) throws {
        let place = ["/usr/bin/", "/bin/"].map { $0 + program }.first(where: FileManager.default.isExecutableFile)
        guard let place else {
            // Only gzip is on every machine.
            return expect(program != "gzip")
        }
        try withFolder { folder in
            let path = folder + "/x_Packages"
            let stanzas = (0..<2000).map { "Package: p\($0)\nVersion: \($0.hashValue)\nArchitecture: all\n" }
            try stanzas.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
            let compress = Process()
            compress.executableURL = URL(fileURLWithPath: place)
            compress.arguments = [path]
            try compress.run()
            compress.waitUntilExit()
            let whole = "\(path).\(suffix)"

            try expectEqual(Survey(of: [IndexFile(path: whole)]).packages, 2000)

            let data = try Data(contentsOf: URL(fileURLWithPath: whole))
            let part = "\(folder)/part_Packages.\(suffix)"
            for length in [data.count / 2, data.count - 2] {
                try data.prefix(length).write(to: URL(fileURLWithPath: part))
                expectThrows(IndexError.self) { try Survey(of: [IndexFile(path: part)]) }
            }
        }
    }

    @Test func `batches cover every package once, across indexes`() async throws {
        try await withFolder { folder in
            let files = try ["one", "two"].map { name in
                let stanzas = (0..<5).map { "Package: \(name)\($0)\nVersion: 1\nArchitecture: all\n" }
                try stanzas.joined(separator: "\n").write(
                    toFile: "\(folder)/\(name)",
                    atomically: true,
                    encoding: .utf8
                )
                return try IndexFile(path: "\(folder)/\(name)")
            }
            let queue = BatchQueue(files, size: 3)

            var sizes: [Int] = []
            var names: Set<String> = []
            while let batch = try await queue.next() {
                sizes.append(batch.records.count)
                names.formUnion(batch.records.map(\.name))
            }

            expectEqual(sizes, [3, 2, 3, 2])
            expectEqual(names.count, 10)
        }
    }

    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private func makeFolder() throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("index-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.resolvingSymlinksInPath().path
    }
}
