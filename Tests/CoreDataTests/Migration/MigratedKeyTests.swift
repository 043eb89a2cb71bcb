import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// The keys of a store that was migrated object by object.
@Suite("Keys after a migration by objects")
struct MigratedKeyTests {
    @Test func `m111 keys of objects that were deleted before are not given again`() throws {
        let (first, second) = (LibraryVersions.first(), LibraryVersions.second())
        let store = try AgingStore(.migrating)
        let highest = try store.use(first) { context in
            var books: [NSManagedObject] = []
            for number in 0..<3 { books.append(context.insert("Book", ["title": "Book \(number)"])) }
            let stamp = context.insert("Stamp", ["text": "gone"])
            try context.save()
            let highest = (book: books.map(\.key).max() ?? 0, stamp: stamp.key)
            for object in [books.max { $0.key < $1.key }, stamp] { context.delete(try require(object)) }
            try context.save()
            return highest
        }
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings.append(LibraryVersions.entity("Stamp", "Note", attributes: ["text": "$source.text"]))
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        let place = store.scratch.file("new.sqlite")
        defer { if store.kind == .postgreSQL { DatabaseTexts.drop(place) } }

        try manager.migrateStore(
            from: store.url,
            type: store.kind.type,
            mapping: mapping,
            to: place,
            type: store.kind.type
        )

        try LibraryMove.change(place, second, type: store.kind.type) { context in
            try expectEqual(context.all("Book").map { $0.value(forKey: "title") as? String }, ["Book 0", "Book 1"])
            let (book, note) = (context.insert("Book", ["title": "new"]), context.insert("Note"))
            try context.save()
            expect(book.key > highest.book, "\(book.key), \(highest.book)")
            expect(note.key > highest.stamp, "\(note.key), \(highest.stamp)")
        }
    }
}
