import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Batches and the order of ordered relationships")
struct BatchOrderTests {
    /// Pages with unique numbers, in an order that their book gives them.
    private func stack(_ kind: StoreKind) throws -> Stack {
        let book = GuideModel.entity("Book", NSManagedObject.self)
        let page = GuideModel.entity("Page", NSManagedObject.self)
        book.properties = [GuideModel.attribute("title", .string)]
        page.properties = [GuideModel.attribute("number", .string)]
        page.uniquenessConstraints = [["number"]]
        GuideModel.relate(page, "book", .one(.nullifyDeleteRule), book, "pages", .ordered(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [book, page]
        return try Stack(kind, model: model)
    }

    private func books(_ titles: [String], _ stack: Stack) throws -> [NSManagedObjectID] {
        let context = stack.context()
        return try context.performAndWait {
            let books = titles.map { title in
                let book = NSEntityDescription.insertNewObject(forEntityName: "Book", into: context)
                book.setValue(title, forKey: "title")
                return book
            }
            try context.save()
            return books.map(\.objectID)
        }
    }

    private func insert(_ pages: [(String, NSManagedObjectID)], in stack: Stack, _ policy: NSMergePolicy = .error)
        throws
    {
        let rows = pages.map { ["number": $0.0, "book": $0.1] as [String: Any] }
        try stack.execute(NSBatchInsertRequest(entityName: "Page", objects: rows), policy)
    }

    private func pages(of book: NSManagedObjectID, _ stack: Stack) throws -> [String] {
        try stack.read(book, NSManagedObject.self) { book in
            (book.value(forKey: "pages") as? NSOrderedSet)?.compactMap {
                ($0 as? NSManagedObject)?.value(forKey: "number") as? String
            } ?? []
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `new members come last, those of each owner in the order of insertion`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        try stack.change(ids[0], NSManagedObject.self) { book, context in
            let pages = ["b", "a"].map { number in
                let page = NSEntityDescription.insertNewObject(forEntityName: "Page", into: context)
                page.setValue(number, forKey: "number")
                return page
            }
            book.setValue(NSOrderedSet(array: pages), forKey: "pages")
        }
        try insert([("z", ids[0]), ("y", ids[1]), ("x", ids[0]), ("w", ids[1])], in: stack)
        try expectEqual(pages(of: ids[0], stack), ["b", "a", "z", "x"])
        try expectEqual(pages(of: ids[1], stack), ["y", "w"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a member that joins comes behind one whose row has come back`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        try insert([("a", ids[0]), ("b", ids[1])], in: stack)
        let context = stack.context(.objectTrump)
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Page")
            request.predicate = NSPredicate(format: "number == 'b'")
            let page = try require(try context.fetch(request).first)
            page.setValue("B", forKey: "number")
            try stack.delete(page.objectID)
            try context.save()
        }
        let update = NSBatchUpdateRequest(entityName: "Page")
        update.predicate = NSPredicate(format: "number == 'a'")
        update.propertiesToUpdate = ["book": ids[1]]
        try stack.execute(update)
        try expectEqual(pages(of: ids[1], stack), ["B", "a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `members that leave and come back within one batch come last`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        try insert([("a", ids[0]), ("b", ids[0]), ("c", ids[0])], in: stack)
        try insert(
            [("a", ids[1]), ("d", ids[0]), ("a", ids[0]), ("b", ids[1])],
            in: stack,
            .mergeByPropertyObjectTrump
        )
        let (first, second) = (try pages(of: ids[0], stack), try pages(of: ids[1], stack))
        expect(first.first == "c" && Set(first.dropFirst()) == ["a", "d"], "\(first)")
        expectEqual(second, ["b"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `members that are given the owner they have keep their places`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        try insert("bcad".map { (String($0), ids[0]) }, in: stack)
        let versions = try ids.map { try stack.version(of: $0) }
        let update = NSBatchUpdateRequest(entityName: "Page")
        update.predicate = NSPredicate(format: "number IN {'b', 'a'}")
        update.propertiesToUpdate = ["book": ids[0]]
        try stack.execute(update)
        try expectEqual(pages(of: ids[0], stack), ["b", "c", "a", "d"])
        // One batch inserts a new page and moves another away.
        try insert(
            [("a", ids[0]), ("d", ids[0]), ("e", ids[0]), ("c", ids[1]), ("b", ids[0])],
            in: stack,
            .mergeByPropertyObjectTrump
        )
        try expectEqual(pages(of: ids[0], stack), ["b", "a", "d", "e"])
        try expectEqual(pages(of: ids[1], stack), ["c"])
        try expectEqual(stack.version(of: ids[1]), versions[1] + 1)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a new member that a later row of the batch gives another owner is the other one's`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        let versions = try ids.map { try stack.version(of: $0) }
        try insert([("a", ids[0]), ("a", ids[1])], in: stack, .mergeByPropertyObjectTrump)
        try expectEqual(pages(of: ids[0], stack), [])
        try expectEqual(pages(of: ids[1], stack), ["a"])
        try expectEqual(stack.version(of: ids[1]), versions[1] + 1)
        // The first owner never had the page. The other stores write row by row, which gives the owner new versions
        // meanwhile.
        if kind == .postgreSQL { try expectEqual(stack.version(of: ids[0]), versions[0]) }
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an update and a delete keep the order of those who stay, and versions show the owners`(_ kind: StoreKind)
        throws
    {
        let stack = try stack(kind)
        let ids = try books(["one", "two"], stack)
        try insert("abcdef".map { (String($0), ids[0]) }, in: stack)
        let versions = try ids.map { try stack.version(of: $0) }
        let update = NSBatchUpdateRequest(entityName: "Page")
        update.predicate = NSPredicate(format: "number IN {'b', 'e'}")
        update.propertiesToUpdate = ["book": ids[1]]
        try stack.execute(update)
        try expectEqual(pages(of: ids[0], stack), ["a", "c", "d", "f"])
        try expectEqual(pages(of: ids[1], stack), ["b", "e"])
        try expectEqual(ids.map { try stack.version(of: $0) }, versions.map { $0 + 1 })
        try stack.execute(NSBatchDeleteRequest("Page", "number IN {'c', 'b'}"))
        try expectEqual(pages(of: ids[0], stack), ["a", "d", "f"])
        try expectEqual(pages(of: ids[1], stack), ["e"])
        update.predicate = NSPredicate(format: "number == 'a'")
        try stack.execute(update)
        update.propertiesToUpdate = ["book": ids[0]]
        try stack.execute(update)
        try expectEqual(pages(of: ids[0], stack), ["d", "f", "a"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases, ["modified <= %@ AND name != 'archive'", "parent.modified <= %@"])
    func `all objects move that match before the first one moves, though the time of their owners is read`(
        _ kind: StoreKind,
        _ predicate: String
    ) throws {
        let node = StoreModels.entity("Node")
        node.properties = [
            StoreModels.attribute("name", .string), StoreModels.attribute("seen", .date),
            StoreModels.derived("modified", .date, NSExpression(format: "now()")),
        ]
        GuideModel.relate(node, "parent", .one(.nullifyDeleteRule), node, "children", .ordered(.nullifyDeleteRule))
        let stack = try Stack(kind, model: StoreModels.model(node))
        let context = stack.context()
        let before = try context.performAndWait {
            var nodes: [String: NSManagedObject] = [:]
            for (name, parent) in [("archive", nil), ("root", nil), ("a", "root"), ("b", "a"), ("c", "a")] {
                let node = NSEntityDescription.insertNewObject(forEntityName: "Node", into: context)
                node.setValue(name, forKey: "name")
                node.setValue(parent.flatMap { nodes[$0] }, forKey: "parent")
                nodes[name] = node
            }
            try context.save()
            let archive = try require(nodes["archive"])
            let before = nodes.compactMapValues { $0.value(forKey: "modified") as? Date }
            let last = try require(before.values.max())
            let request = NSBatchUpdateRequest(entityName: "Node")
            request.predicate = NSPredicate(format: predicate, last as NSDate)
            // The expression sees the same time as the predicate.
            request.propertiesToUpdate = ["parent": archive.objectID, "seen": NSExpression(forKeyPath: "modified")]
            request.resultType = .updatedObjectsCountResultType
            let meant = try context.count(for: fetch(request.predicate))
            let count = (try context.execute(request) as? NSBatchUpdateResult)?.result as? Int
            expectEqual(count, meant)
            return before
        }
        let reader = stack.context()
        let moved = try reader.performAndWait {
            try reader.fetch(fetch(NSPredicate(format: "parent.name == 'archive'"))).map { node in
                let (name, seen) = (node.value(forKey: "name") as? String, node.value(forKey: "seen") as? Date)
                expectEqual(seen, before[name ?? ""])
                return name
            }
        }
        expectEqual(Set(moved), predicate.hasPrefix("parent") ? ["a", "b", "c"] : ["root", "a", "b", "c"])
        try expectEqual(stack.problems(), [])
    }

    private func fetch(_ predicate: NSPredicate?) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Node")
        request.predicate = predicate
        return request
    }
}
