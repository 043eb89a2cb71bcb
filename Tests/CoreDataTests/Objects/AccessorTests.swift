import CoreData
import Expectations
import TestSupport
import Testing

/// The methods that Xcode generates for to-many relationships.
@Suite("Generated accessors")
struct AccessorTests {
    private func stack(_ kind: StoreKind) throws -> Stack {
        let (book, page, tag) = (
            GuideModel.entity("Book", AccessorBook.self), GuideModel.entity("Page", AccessorPage.self),
            GuideModel.entity("Label", AccessorLabel.self)
        )
        page.properties = [GuideModel.attribute("number", .integer16)]
        GuideModel.relate(book, "pages", .ordered(.cascadeDeleteRule), page, "book", .one(.nullifyDeleteRule))
        GuideModel.relate(book, "labels", .many(.nullifyDeleteRule), tag, "books", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [book, page, tag]
        return try Stack(kind, model: model)
    }

    @Test(arguments: StoreKind.allCases)
    func `members are added and removed one by one, and as a collection`(_ kind: StoreKind) throws {
        try stack(kind).inContext { context in
            let book = AccessorBook(context: context)
            let labels = (0..<4).map { _ in AccessorLabel(context: context) }
            book.addToLabels(labels[0])
            book.addToLabels(NSSet(array: [labels[1], labels[2]]))
            book.addToLabels([labels[3]])
            expectEqual(book.labels, Set(labels))
            expect(labels.allSatisfy { $0.books == [book] })
            book.removeFromLabels(labels[0])
            book.removeFromLabels(NSSet(array: [labels[1]]))
            expectEqual(book.labels, [labels[2], labels[3]])
            labels[0].add(book)
            expect(book.labels.contains(labels[0]))
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `members of an ordered relationship are inserted, removed and replaced by position`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        try stack.inContext { context in
            let book = AccessorBook(context: context)
            let pages = (0..<6).map { number in
                let page = AccessorPage(context: context)
                page.number = Int16(number)
                return page
            }
            book.addToPages(pages[0])
            book.addToPages(NSOrderedSet(array: [pages[2], pages[1]]))
            book.insertIntoPages(pages[3], at: 1)
            expectEqual(book.pages.map(\.number), [0, 3, 2, 1])
            book.insertIntoPages([pages[4], pages[5]], at: IndexSet([0, 2]) as NSIndexSet)
            expectEqual(book.pages.map(\.number), [4, 0, 5, 3, 2, 1])
            book.removeFromPages(at: 1)
            book.removeFromPages(at: IndexSet([0, 2]) as NSIndexSet)
            expectEqual(book.pages.map(\.number), [5, 2, 1])
            book.replacePages(at: 0, with: pages[0])
            book.replacePages(at: IndexSet([1, 2]) as NSIndexSet, with: [pages[3], pages[4]])
            expectEqual(book.pages.map(\.number), [0, 3, 4])
            book.removeFromPages(pages[3])
            book.removeFromPages(NSOrderedSet(array: [pages[4]]))
            expect(book.pages == [pages[0]] && pages[3].book == nil)
            book.addPages(NSOrderedSet(array: [pages[4], pages[5]]))
            book.addPagesObject(pages[3])
            expectEqual(book.pages.map(\.number), [0, 4, 5, 3])
            book.removePages(NSOrderedSet(array: [pages[4], pages[5]]))
            book.removePagesObject(pages[3])
            expect(book.pages == [pages[0]] && pages[3].book == nil)
            try context.save()
        }
        try stack.inContext { context throws in
            let book = try require(try context.fetch(NSFetchRequest<AccessorBook>(entityName: "Book")).first)
            expectEqual(book.pages.map(\.number), [0])
        }
    }
}

final class AccessorBook: NSManagedObject {
    @Managed var pages: [AccessorPage]
    @Managed var labels: Set<AccessorLabel>
}

// MARK: Generated accessors for pages
extension AccessorBook {
    @ManagedAccessor
    func insertIntoPages(_ value: AccessorPage, at idx: Int)

    @ManagedAccessor
    func removeFromPages(at idx: Int)

    @ManagedAccessor
    func insertIntoPages(_ values: [AccessorPage], at indexes: NSIndexSet)

    @ManagedAccessor
    func removeFromPages(at indexes: NSIndexSet)

    @ManagedAccessor
    func replacePages(at idx: Int, with value: AccessorPage)

    @ManagedAccessor
    func replacePages(at indexes: NSIndexSet, with values: [AccessorPage])

    @ManagedAccessor
    func addPages(_ values: NSOrderedSet)

    @ManagedAccessor
    func addPagesObject(_ value: AccessorPage)

    @ManagedAccessor
    func removePages(_ values: NSOrderedSet)

    @ManagedAccessor
    func removePagesObject(_ value: AccessorPage)

    @ManagedAccessor
    func addToPages(_ value: AccessorPage)

    @ManagedAccessor
    func removeFromPages(_ value: AccessorPage)

    @ManagedAccessor
    func addToPages(_ values: NSOrderedSet)

    @ManagedAccessor
    func removeFromPages(_ values: NSOrderedSet)
}

// MARK: Generated accessors for labels
extension AccessorBook {
    @ManagedAccessor func addToLabels(_ value: AccessorLabel)
    @ManagedAccessor func removeFromLabels(_ value: AccessorLabel)
    @ManagedAccessor func addToLabels(_ values: NSSet)
    @ManagedAccessor func removeFromLabels(_ values: NSSet)
    @ManagedAccessor func addToLabels(_ values: Set<AccessorLabel>)
}

final class AccessorPage: NSManagedObject {
    @Managed var number: Int16
    @Managed var book: AccessorBook?
}

final class AccessorLabel: NSManagedObject {
    @Managed var books: Set<AccessorBook>

    func add(_ book: AccessorBook) { addToMyBooks(book) }
    @ManagedAccessor("books") private func addToMyBooks(_ book: AccessorBook)
}
