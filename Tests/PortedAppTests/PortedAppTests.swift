import CoreData
import Expectations
import Foundation
import Testing

@testable import PortedApp

@Suite("An app in the style of Xcode")
struct PortedAppTests {
    /// A context on an empty store in memory.
    private static func context() throws -> NSManagedObjectContext {
        let model = try require(LibraryStack.compiledModel)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    /// Does something in a context, saves, and does something else with everything read anew.
    private static func roundTrip(
        _ write: (NSManagedObjectContext) throws -> Void,
        _ read: (NSManagedObjectContext) throws -> Void
    ) throws {
        let context = try context()
        try context.performAndWait {
            try write(context)
            try context.save()
            context.reset()
            try read(context)
        }
    }

    @Test func `a container finds the model by its name, among those of other targets`() {
        let names = NSPersistentContainer(name: "Library").managedObjectModel.entities.compactMap(\.name)

        expectEqual(Set(names), ["Author", "Book", "Chapter", "Magazine", "Medium", "Shelf"])
    }

    @Test func `the bundle has the model under both of its names`() throws {
        let (compiled, edited) = (try require(LibraryStack.compiledModel), try require(LibraryStack.editedModel))

        expectEqual(compiled.entitiesByName.count, 6)
        expectEqual(compiled.entityVersionHashesByName, edited.entityVersionHashesByName)
        expect(compiled.entitiesByName["Author"]?.attributesByName["default"] != nil)
        let first = try require(LibraryStack.version("Library"))
        expectEqual(first.entitiesByName["Author"]?.attributesByName["default"], nil)
    }

    @Test func `generated classes keep every type of attribute`() throws {
        let (date, uuid) = (Date(timeIntervalSinceReferenceDate: 1000), UUID())
        try Self.roundTrip { context in
            let book = Book(context: context)
            book.title = "Dune"
            book.identifier = uuid
            book.addedAt = date
            book.cover = Data([1, 2, 3])
            book.dimensions = [1, 2]
            book.isLent = true
            book.link = URL(string: "https://example.org/dune")
            book.onSale = true
            book.pages = 412
            book.pages += 1
            book.price = NSDecimalNumber(string: "12.50")
            book.printed = 70_000
            book.publisher = ["city": "Philadelphia"]
            book.readAt = date.timeIntervalSinceReferenceDate
            book.sold = 20_000_000
            book.stars = 4.5
            book.weight = 0.5
        } _: { context in
            let book = try require(try context.fetch(Book.fetchRequest() as NSFetchRequest<Book>).first)
            expect(book.title == "Dune" && book.identifier == uuid && book.addedAt == date)
            expect(book.cover == Data([1, 2, 3]) && book.isLent && book.onSale == true)
            expectEqual(book.dimensions?.count, 2)
            expectEqual(book.link?.host, "example.org")
            expect(book.pages == 413 && book.printed == 70_000 && book.sold == 20_000_000)
            expectEqual(book.price, NSDecimalNumber(string: "12.50"))
            expectEqual(book.publisher?["city"] as? String, "Philadelphia")
            expect(book.readAt == 1000 && book.stars == 4.5 && book.weight == 0.5)
            expectEqual(book.chapterCount, 0)
        }
    }

    @Test func `@NSManaged properties are read, written and changed in place`() throws {
        try Self.roundTrip { context in
            let chapter = Chapter(context: context)
            chapter.number = 1
            chapter.number += 2
            chapter.text = "It was a dark"
            chapter.text?.append(" and stormy night")
            chapter.tags = ["opening"]
            chapter.kind = .picture
            chapter[keyPath: \.kindValue] += 0
            chapter.read()
            chapter.read()
        } _: { context in
            let chapter = try require(try context.fetch(Chapter.fetchRequest() as NSFetchRequest<Chapter>).first)
            expectEqual(chapter.number, 3)
            expectEqual(chapter.text, "It was a dark and stormy night")
            expect(chapter.tags == ["opening"] && chapter.kind == .picture && chapter.timesRead == 2)
        }
    }

    @Test func `to-many accessors keep inverses, generated and with @NSManaged`() throws {
        try Self.roundTrip { context in
            let (book, author, shelf) = (
                Book(context: context), Author(context: context), ShelfObject(context: context)
            )
            let magazine = Magazine(context: context)
            author.name = "Frank Herbert"
            author.default = "SF"
            author.addToBooks(book)
            book.pages = 400
            for number in 1...3 {
                let chapter = Chapter(context: context)
                chapter.number = Int32(number)
                book.insertIntoChapters(chapter, at: 0)
            }
            shelf.name = "A"
            shelf.addToMedia(book)
            shelf.insertIntoMedia(magazine, at: 0)
            magazine.issue = 7
        } _: { context in
            let shelf = try require(try context.fetch(ShelfObject.fetchRequest() as NSFetchRequest<ShelfObject>).first)
            expect(shelf.media?.count == 2 && (shelf.media?.firstObject as? Magazine)?.issue == 7)
            let book = try require(shelf.media?.lastObject as? Book)
            expect(book.shelf === shelf)
            expectEqual((book.chapters?.array as? [Chapter])?.map(\.number), [3, 2, 1])
            expect((book.chapters?.firstObject as? Chapter)?.book === book)
            let author = try require(book.authors?.anyObject() as? Author)
            expect(author.sortName == "Herbert" && author.default == "SF" && author.longBooks == [book])
            shelf.removeFromMedia(at: 0)
            shelf.removeFromMedia(book)
            expect(shelf.media?.count == 0 && book.shelf == nil)
            author.removeFromBooks(book)
            expectEqual(book.authors?.count, 0)
        }
    }

    @Test func `key paths of generated and of @NSManaged properties make requests`() throws {
        try Self.roundTrip { context in
            for number in 1...3 {
                let (book, chapter) = (Book(context: context), Chapter(context: context))
                (book.title, chapter.number) = ("\(number)", Int32(number))
            }
            ShelfObject(context: context).name = "A"
        } _: { context in
            let books: NSFetchRequest<Book> = Book.fetchRequest()
            books.sortDescriptors = [NSSortDescriptor(keyPath: \Book.title, ascending: false)]
            let titles = try context.fetch(books).map(\.title)
            expectEqual(titles, ["3", "2", "1"])
            let chapters: NSFetchRequest<Chapter> = Chapter.fetchRequest()
            chapters.predicate = NSPredicate(format: "%K > %d", "number", 1)
            chapters.sortDescriptors = [NSSortDescriptor(keyPath: \Chapter.number, ascending: true)]
            let numbers = try context.fetch(chapters).map(\.number)
            expectEqual(numbers, [2, 3])
            // As in Xcode, the class's own method is the nearest.
            let shelves = ShelfObject.fetchRequest()
            shelves.sortDescriptors = [ShelfObject.byName()]
            let count = try context.count(for: shelves)
            expectEqual(count, 1)
        }
    }

    @Test func `sub-entities have generated subclasses, and are fetched as their parent`() throws {
        try Self.roundTrip { context in
            Book(context: context).title = "b"
            Magazine(context: context).title = "a"
        } _: { context in
            let request: NSFetchRequest<Medium> = Medium.fetchRequest()
            request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
            let media = try context.fetch(request)
            expect(media.map(\.title) == ["a", "b"] && media[0] is Magazine && media[1] is Book)
        }
    }
}
