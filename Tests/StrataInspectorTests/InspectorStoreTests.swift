import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@testable import StrataInspector

@Suite("The inspector on stores that Apple's framework made")
struct InspectorStoreTests {
    /// This store names an external file that is intentionally missing.
    private static let withMissingFile = "messaging-sanitised"

    @Test(arguments: AppleStores.pairs)
    func `verify finds nothing wrong but a missing external file`(pair: AppleStores.Pair) throws {
        let copy = try StoreCopy(pair)

        let result = copy.run("verify")

        if pair.store.hasPrefix(Self.withMissingFile) {
            expectEqual(result.code, .problemsFound)
            expectEqual(result.lines.count, 1)
            expectEqual(result.lines.first?.contains("external"), true)
        } else {
            // Values cannot be checked if only the app has their transformers.
            let lines = result.lines.filter { !$0.hasPrefix("note: ") }
            expectEqual(lines, ["\(copy.store.path) is sound."])
            expectEqual(result.code, .success)
        }
        try expect(copy.isUntouched)
    }

    @Test(
        .enabled(if: AppleStores.has("books"), "the store of books is not here"),
        arguments: [
            ("UPDATE ACHANGE SET ZENTITYPK = ZENTITYPK + 1000 WHERE Z_PK = (SELECT MIN(Z_PK) FROM ACHANGE)", "missing"),
            ("UPDATE ACHANGE SET ZCHANGETYPE = 2 WHERE Z_PK = (SELECT MIN(Z_PK) FROM ACHANGE)", "deleted"),
            ("DELETE FROM ATRANSACTION", "of no transaction"),
        ]
    )
    func `verify names what a damaged history does not lead to`(damage: String, problem: String) throws {
        let copy = try StoreCopy(try require(AppleStores.pairs.first { $0.store.contains("history") }))
        try Connection(path: copy.store.path, access: .readWrite).execute(damage)

        let result = copy.run("verify")

        expectEqual(result.code, .problemsFound)
        expect(result.lines.contains { $0.contains(problem) }, "\(result.lines)")
    }

    @Test(arguments: AppleStores.pairs)
    func `inspect counts the objects of each entity`(pair: AppleStores.Pair) throws {
        let copy = try StoreCopy(pair)

        let result = copy.run("inspect")

        expectEqual(result.code, .success)
        for entity in try AppleStores.model(pair).entities where !entity.isAbstract {
            let name = try require(entity.name)
            let count = try copy.countRows(of: entity, in: pair)
            let line = result.lines.first { $0.split(separator: " ").first == name[...] }
            expectEqual(line?.split(separator: " ").contains("\(count)"), true, "\(name) has \(count) rows")
        }
        try expect(copy.isUntouched)
    }

    @Test(arguments: AppleStores.pairs)
    func `fetch prints every object of every entity as JSON`(pair: AppleStores.Pair) throws {
        let copy = try StoreCopy(pair)
        let model = try AppleStores.model(pair)

        for entity in model.entities where entity.superentity == nil {
            let name = try require(entity.name)
            let result = copy.run("fetch", "--entity", name, "--json")

            expectEqual(result.code, .success, "\(name): \(result.complaints)")
            expectEqual(result.lines.count, (try copy.countRows(of: entity, in: pair, withSubentities: true)))
            for line in result.lines {
                let object = try require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                let entityName = try require(object["@entity"] as? String)
                let concrete = try require(model.entitiesByName[entityName])
                expectEqual(Set(object.keys), Set(Self.keys(of: concrete) + ["@id", "@entity"]))
            }
        }
        try expect(copy.isUntouched)
    }

    @Test(.enabled(if: AppleStores.has("cars"), "the store of cars is not here"))
    func `fetch sorts, filters and limits`() throws {
        let cars = try require(AppleStores.pairs.first { $0.store.hasPrefix("cars") })
        let copy = try StoreCopy(cars)
        let arguments = ["fetch", "--entity", "Car", "--sort", "-numberPlate", "--limit", "3", "--json"]

        let result = copy.run(arguments + ["--predicate", "maker == 'FIAT'"])

        let plates = try result.lines.map { line in
            let object = try require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            expectEqual(object["maker"] as? String, "FIAT")
            return try require(object["numberPlate"] as? String)
        }
        expectEqual(plates.count, 3)
        expectEqual(plates, plates.sorted(by: >))
    }

    /// Predicates, each with a query that counts the objects to find.
    private static let predicates: [(store: String, entity: String, predicate: String, query: String)] = [
        (
            "bookmarks-ordered", "BookmarkEntity", "isFolder == YES AND children.@count > 0",
            "ZBOOKMARKENTITY f WHERE ZISFOLDER = 1 AND Z_PK IN (SELECT ZPARENT FROM ZBOOKMARKENTITY)"
        ),
        (
            "bookmarks-ordered", "BookmarkEntity", "ANY favoriteFolders.title == 'favorites_root'",
            "Z_1FAVORITES WHERE Z_1FAVORITEFOLDERS = 6"
        ),
        (
            "bookmarks-v2", "BookmarkEntity", "title MATCHES '.+' AND isFavorite == NO",
            "ZBOOKMARKENTITY WHERE LENGTH(ZTITLE) > 0 AND ZISFAVORITE = 0"
        ),
        (
            "books", "Page", "number BETWEEN {10, 20} AND book.title LIKE 'title*'",
            "ZPAGE p JOIN ZBOOK b ON b.Z_PK = p.ZBOOK WHERE p.ZNUMBER BETWEEN 10 AND 20"
        ),
        (
            "books", "Book", "pages.@max.number > 1 AND price < 5",
            "ZBOOK b WHERE ZPRICE < 5 AND (SELECT MAX(ZNUMBER) FROM ZPAGE WHERE ZBOOK = b.Z_PK) > 1"
        ),
        (
            "books", "Feedback", "rating * 2 > 8 AND comment CONTAINS[cd] 'NÖVEL'",
            "ZFEEDBACK WHERE ZRATING > 4 AND ZCOMMENT LIKE '%novel%'"
        ),
        (
            "cars", "Person", "SUBQUERY(cars, $c, $c.maker == 'FIAT').@count > 0",
            "ZPERSON p WHERE Z_PK IN (SELECT ZOWNER FROM ZCAR WHERE ZMAKER = 'FIAT')"
        ),
        (
            "cars", "Person", "NONE cars.maker IN {'FIAT', 'BMW'}",
            "ZPERSON WHERE Z_PK NOT IN (SELECT ZOWNER FROM ZCAR WHERE ZMAKER IN ('FIAT', 'BMW') AND ZOWNER > 0)"
        ),
        (
            "cars", "Car", "owner.cars.@count > 3 AND numberPlate LIKE '*1*'",
            "ZCAR c WHERE ZNUMBERPLATE LIKE '%1%' AND (SELECT COUNT(*) FROM ZCAR o WHERE o.ZOWNER = c.ZOWNER) > 3"
        ),
        (
            "messaging", "UserClient", "user.name LIKE 'name-*'",
            "ZUSERCLIENT c JOIN ZUSER u ON u.Z_PK = c.ZUSER WHERE u.ZNAME LIKE 'name-%'"
        ),
        (
            "messaging", "SystemMessage", "users.@count > 1",
            "ZMESSAGE m WHERE (SELECT COUNT(*) FROM Z_11USERS WHERE Z_11SYSTEMMESSAGES = m.Z_PK) > 1"
        ),
        ("posts", "Post", "content != nil AND date < now()", "ZPOST WHERE ZCONTENT IS NOT NULL"),
        (
            "surfjournal", "JournalEntry", "rating > 3 AND location CONTAINS[cd] 'A'",
            "ZJOURNALENTRY WHERE ZRATING > 3 AND ZLOCATION LIKE '%a%'"
        ),
        (
            "surfjournal", "JournalEntry", "length(height) > 2 AND rating IN {1, 5}",
            "ZJOURNALENTRY WHERE LENGTH(ZHEIGHT) > 2 AND ZRATING IN (1, 5)"
        ),
        ("sync", "SyncFeatureEntity", "name != nil AND NOT name == ''", "ZSYNCFEATUREENTITY WHERE ZNAME > ''"),
    ]

    /// The predicates whose stores exist here.
    private static let answerable = predicates.indices.filter { AppleStores.has(predicates[$0].store) }

    @Test(arguments: answerable)
    func `fetch answers predicates on stores of each kind`(_ index: Int) throws {
        let (store, entity, predicate, query) = Self.predicates[index]
        let pair = try require(AppleStores.pairs.first { $0.store.hasPrefix(store) })
        let copy = try StoreCopy(pair)

        let result = copy.run("fetch", "--entity", entity, "--predicate", predicate, "--json")

        let expected = try require(
            try AppleStores.rows("SELECT COUNT(*) FROM \(query)", in: pair).first?.first as? Int64
        )
        expect(expected > 0)
        expectEqual(result.code, .success, "\(predicate): \(result.complaints)")
        expectEqual(result.lines.count, Int(expected), "\(predicate)")
        try expect(copy.isUntouched)
    }

    @Test(arguments: [
        (["--entity", "Lorry"], ExitCode.usage), (["--entity", "BookmarkEntity", "--sort", "wings"], .usage),
        (["--entity", "BookmarkEntity", "--sort", "parent"], .usage),
        (["--entity", "BookmarkEntity", "--sort", "children.title"], .usage),
        (["--entity", "BookmarkEntity", "--predicate", "title =="], .failure),
        (["--entity", "BookmarkEntity", "--predicate", "wings == 2"], .failure),
    ])
    func `a request that makes no sense for the model is refused`(arguments: [String], code: ExitCode) throws {
        let bookmarks = try require(AppleStores.pairs.first { $0.store.hasPrefix("bookmarks") })

        let result = try StoreCopy(bookmarks).run(["fetch"] + arguments)

        expectEqual(result.code, code)
        expect(result.lines.isEmpty)
        expect(!result.complaints.isEmpty)
    }

    @Test func `a store and a model that do not fit are noticed`() throws {
        let sync = try require(AppleStores.pairs.first { $0.store.hasPrefix("sync") })
        let bookmarks = try require(AppleStores.pairs.first { $0.store.hasPrefix("bookmarks") })
        let copy = try StoreCopy(sync, model: bookmarks)

        expectEqual(copy.run("fetch", "--entity", "BookmarkEntity").code, .failure)
        expectEqual(copy.run("verify").code, .problemsFound)
    }

    @Test(arguments: AppleStores.pairs)
    func `model and schema explain each model`(pair: AppleStores.Pair) throws {
        let copy = try StoreCopy(pair)

        let model = copy.runAlone("model", copy.model.path)
        let schema = copy.runAlone("schema", "--model", copy.model.path)

        expectEqual(model.code, .success)
        for name in try AppleStores.model(pair).entitiesByName.keys {
            expect(model.lines.contains { $0.hasPrefix("Entity \(name)") || $0.hasPrefix("Abstract entity \(name)") })
        }
        expectEqual(schema.code, .success)
        expect(schema.lines.contains { $0.hasPrefix("CREATE TABLE Z_PRIMARYKEY ") })
    }

    /// The properties whose values are printed.
    private static func keys(of entity: NSEntityDescription) -> [String] {
        Array(entity.attributesByName.keys) + Array(entity.relationshipsByName.keys)
    }
}

/// A copy of a store, with the model of the pair or another one.
private final class StoreCopy {
    typealias Result = (code: ExitCode, lines: [String], complaints: [String])

    let store: URL
    let model: URL
    private let folder: URL
    private let contents: [String: Data]

    init(_ pair: AppleStores.Pair, model: AppleStores.Pair? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("inspector-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        store = folder.appendingPathComponent("store.sqlite")
        self.model = (model ?? pair).modelURL
        let source = pair.storeURL.path
        var contents: [String: Data] = [:]
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: source + suffix) {
            let data = try Data(contentsOf: URL(fileURLWithPath: source + suffix))
            // The file is written anew, since a copy would keep the permissions of a source that may be read-only.
            try data.write(to: URL(fileURLWithPath: store.path + suffix))
            contents[suffix] = data
        }
        self.contents = contents
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Whether the store and its log are byte for byte as they were.
    var isUntouched: Bool {
        get throws {
            try contents.allSatisfy { try Data(contentsOf: URL(fileURLWithPath: store.path + $0.key)) == $0.value }
        }
    }

    func countRows(
        of entity: NSEntityDescription,
        in pair: AppleStores.Pair,
        withSubentities: Bool = false
    ) throws -> Int {
        var root = entity
        while let parent = root.superentity { root = parent }
        var names = [entity.name ?? ""]
        if withSubentities {
            var waiting = entity.subentities
            while let next = waiting.popLast() {
                names.append(next.name ?? "")
                waiting += next.subentities
            }
        }
        let list = names.map { "'\($0)'" }.joined(separator: ", ")
        let rows = try AppleStores.rows(
            """
            SELECT count(*) FROM Z\((root.name ?? "").uppercased())
            WHERE Z_ENT IN (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME IN (\(list)))
            """,
            in: pair
        )
        return Int(rows.first?.first as? Int64 ?? -1)
    }

    func run(_ words: String...) -> Result {
        run(words)
    }

    /// Runs a command on the store with the model.
    func run(_ words: [String]) -> Result {
        execute(words + ["--store", store.path, "--model", model.path])
    }

    func runAlone(_ words: String...) -> Result {
        execute(words)
    }

    private func execute(_ words: [String]) -> Result {
        var lines: [String] = []
        var complaints: [String] = []
        let code = StrataCommand.run(words, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (code, lines, complaints)
    }
}
