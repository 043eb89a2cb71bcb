import CoreData
import Expectations
import Foundation
import Testing

@testable import SwiftData

/// The same classes without options that change a hash.
private enum Plain {
    @Model final class Book {
        var title: String
        var note = "n"
        var readers: [Reader] = []

        init(_ title: String) { self.title = title }
    }
}

@Suite("SwiftData: options of attributes and relationships")
struct AttributeOptionTests {
    private func context(_ place: Place) throws -> ModelContext {
        ValueTransformer.setValueTransformer(
            ShadeTransformer(),
            forName: NSValueTransformerName("ShadeTransformer")
        )
        return ModelContext(try place.container(Schema([Book.self])))
    }

    private func books(_ context: ModelContext) throws -> [Book] {
        try ModelContext(context.container).fetch(FetchDescriptor<Book>(sortBy: [SortDescriptor(\.number)]))
    }

    @Test(arguments: Place.ownCases)
    func `transformed, external and ephemeral values`(_ place: Place) throws {
        let context = try context(place)
        let book = Book("a", number: 1)
        book.cover = Shade(red: 0.25)
        book.back = Shade(red: 0.75)
        book.scan = Data(repeating: 7, count: 1_000_000)
        book.openPage = 9
        context.insert(book)
        try context.save()
        let read = try require(try books(context).first)
        expectEqual([read.cover?.red, read.back.red], [0.25, 0.75])
        expect(read.scan == book.scan && read.openPage == 4 && read.note == "n")
        // An ephemeral value stays in its context, also after a save.
        expectEqual(book.openPage, 9)
        read.cover = nil
        read.back = Shade(red: 1)
        try read.modelContext?.save()
        expect(book.cover == nil && book.back.red == 1)
        expectEqual(try books(context).map(\.back.red), [1])
    }

    @Test(arguments: Place.ownCases)
    func `a deletion that a rule denies is refused by the save, and nothing is lost`(_ place: Place) throws {
        let context = try context(place)
        let book = Book("a", number: 1)
        book.loans = [Loan(days: 3)]
        context.insert(book)
        try context.save()
        context.delete(book)
        let error = expectThrows(CocoaError.self) { try context.save() }
        expectEqual(error?.code.rawValue, NSValidationRelationshipDeniedDeleteError)
        expect(context.hasChanges && book.isDeleted)
        context.rollback()
        expect(!book.isDeleted && book.loans.map(\.days) == [3])
        context.delete(book.loans[0])
        context.delete(book)
        try context.save()
        expect(try books(context).isEmpty)
    }

    @Test(arguments: Place.ownCases)
    func `a relationship with too many objects is refused by the save`(_ place: Place) throws {
        let context = try context(place)
        let book = Book("a", number: 1)
        book.readers = ["Ada", "Bea", "Cid"].map { Reader($0) }
        context.insert(book)
        let error = expectThrows(CocoaError.self) { try context.save() }
        expectEqual(error?.code.rawValue, NSValidationRelationshipExceedsMaximumCountError)
        book.readers.removeLast()
        try context.save()
        expectEqual(try books(context).first?.readers.count, 2)
    }

    @Test(arguments: Place.ownCases)
    func `the history keeps the values of a deleted object that are to be preserved`(_ place: Place) throws {
        let context = try context(place)
        let book = Book("a", number: 7)
        book.marks = [Mark(page: 3)]
        context.insert(book)
        try context.save()
        context.delete(book)
        try context.save()
        let last = try require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
        let deletions = last.changes.compactMap { change -> (any HistoryDelete<Book>)? in
            if case .delete(let delete) = change { delete as? any HistoryDelete<Book> } else { nil }
        }
        let tombstone: HistoryTombstone<Book> = try require(deletions.first).tombstone
        expect(tombstone[\.number] as? Int == 7 && tombstone[\.title] == nil && tombstone[\.label] == nil)
        var iterator: HistoryTombstone<Book>.Iterator = tombstone.makeIterator()
        expect(iterator.next() as? Int == 7 && iterator.next() == nil)
    }

    @Test func `the schema has the options, and those that stores must know change the hash`() throws {
        let schema = Schema(Book.self)
        let book = try require(schema.entitiesByName["Book"])
        let cover = try require(book.attributesByName["cover"])
        expect(cover.isTransformable && !cover.isTransient && !cover.isUnique)
        expect(book.attributesByName["openPage"]?.isTransient == true)
        expectEqual(book.attributesByName["note"]?.hashModifier, "2")
        expectEqual(book.attributesByName["note"]?.options, [.spotlight, .allowsCloudEncryption])
        let loans = try require(book.relationshipsByName["loans"])
        expect(loans.deleteRule == Schema.Relationship.DeleteRule.deny && loans.inverseKeyPath == \Loan.book)
        expectEqual(book.relationshipsByName["marks"]?.deleteRule, .noAction)
        let readers = try require(book.relationshipsByName["readers"])
        expect(readers.maximumModelCount == 2 && readers.hashModifier == "2" && !readers.isTransient)
        let properties: [any SchemaProperty] = [cover, readers]
        expect(properties.allSatisfy { !$0.isTransient })
        func hashes(_ type: any PersistentModel.Type) -> [String: Data] {
            let entity = Schema([type]).model.entitiesByName["Book"]
            return ["note", "readers"].reduce(into: [:]) { $0[$1] = entity?.propertiesByName[$1]?.versionHash }
        }
        let (own, plain) = (hashes(Book.self), hashes(Plain.Book.self))
        expect(own.count == 2 && own["note"] != plain["note"] && own["readers"] != plain["readers"])
    }
}
