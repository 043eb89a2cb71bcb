import CoreData
import Expectations
import TestSupport

/// One store, the context that operations are about, and one that changes the store beside it.
final class PairWorld: @unchecked Sendable {
    // @unchecked Sendable: one test uses it, and its blocks run one after another.
    let stack: Stack
    let context: NSManagedObjectContext
    let other: NSManagedObjectContext
    /// The name of the item that is tried at the moment.
    private(set) var name = ""
    private(set) var item: NSManagedObject
    private var serial = 0
    var reference = PairReference()
    /// Makes the names of new parts and tags differ.
    private var made = 0
    private var isCounting = false

    /// Whether the store has a history and pinned versions.
    var isDatabase: Bool { stack.kind != .memory }

    init(_ kind: StoreKind) throws {
        let options: [AnyHashable: Any] = kind == .memory ? [:] : [NSPersistentHistoryTrackingKey: true]
        stack = try Stack(kind, model: Self.model, options: options)
        context = stack.context("A")
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        context.undoManager = UndoManager()
        other = stack.context("B")
        other.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        item = NSManagedObject(entity: try require(Self.model.entitiesByName["Item"]), insertInto: nil)
    }

    static let model: NSManagedObjectModel = {
        let (thing, item) = (
            GuideModel.entity("Thing", NSManagedObject.self), GuideModel.entity("Item", NSManagedObject.self)
        )
        let (owner, part) = (
            GuideModel.entity("Owner", NSManagedObject.self), GuideModel.entity("Part", NSManagedObject.self)
        )
        let tag = GuideModel.entity("Tag", NSManagedObject.self)
        let blob = GuideModel.attribute("blob", .binaryData)
        blob.allowsExternalBinaryDataStorage = true
        thing.properties = [
            GuideModel.attribute("name", .string), GuideModel.attribute("number", .integer64, default: 0),
        ]
        item.properties = [GuideModel.attribute("text", .string), blob]
        thing.subentities = [item]
        for entity in [owner, part, tag] { entity.properties = [GuideModel.attribute("name", .string)] }
        GuideModel.relate(item, "owner", .one(.nullifyDeleteRule), owner, "items", .ordered(.nullifyDeleteRule))
        GuideModel.relate(item, "parts", .ordered(.cascadeDeleteRule), part, "item", .one(.nullifyDeleteRule))
        GuideModel.relate(item, "tags", .many(.nullifyDeleteRule), tag, "items", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [thing, item, owner, part, tag]
        return model
    }()

    // MARK: - Beginning

    /// Makes an item with an owner, three parts and two tags, and saves it if it is to begin as a stored one.
    func begin(isStored: Bool) throws {
        serial += 1
        name = "i\(serial)"
        context.performAndWait { context.reset() }
        other.performAndWait { other.reset() }
        let picture = PairPicture(
            number: serial % 3,
            text: "begun",
            blob: 10,
            owner: "\(name)o1",
            parts: (1...3).map { "\(name)p\($0)" },
            tags: ["\(name)t1", "\(name)t2"]
        )
        try context.performAndWait {
            for number in 1...2 { made("Owner", "\(name)o\(number)", in: context) }
            made("Tag", "\(name)t3", in: context)
            if !isStored { try context.save() }
            item = made("Item", name, in: context)
            item.setValue(picture.number, forKey: "number")
            item.setValue(picture.text, forKey: "text")
            item.setValue(Data(count: picture.blob), forKey: "blob")
            item.setValue(try object("Owner", "\(name)o1", in: context), forKey: "owner")
            item.setValue(NSOrderedSet(array: picture.parts.map { made("Part", $0, in: context) }), forKey: "parts")
            let tags = [made("Tag", "\(name)t1", in: context), made("Tag", "\(name)t2", in: context)]
            item.setValue(Set(tags) as NSSet, forKey: "tags")
            if isStored { try context.save() } else { context.processPendingChanges() }
            context.undoManager?.removeAllActions()
        }
        reference = PairReference(stored: isStored ? picture : nil, seen: picture)
    }

    /// A number that no operation of this item has had.
    func next() -> Int {
        made += 1
        return made
    }

    @discardableResult
    func made(_ entity: String, _ name: String, in context: NSManagedObjectContext) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        object.setValue(name, forKey: "name")
        return object
    }

    /// The object of a name, by a fetch.
    func found(_ entity: String, _ name: String, in context: NSManagedObjectContext) throws -> NSManagedObject? {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.predicate = NSPredicate(format: "name == %@", name)
        let found = try context.fetch(request)
        expect(found.count < 2, "one \(entity) is called \(name)")
        return found.first
    }

    func object(_ entity: String, _ name: String, in context: NSManagedObjectContext) throws -> NSManagedObject {
        try require(try found(entity, name, in: context), "there is \(entity) \(name)")
    }

    /// The item in a context.
    func item(in context: NSManagedObjectContext) throws -> NSManagedObject { try object("Item", name, in: context) }

    /// Begins again with another instance of the item, after a reset or a new store.
    func find() throws {
        try context.performAndWait { if let found = try found("Item", name, in: context) { item = found } }
    }

    // MARK: - Looking

    /// The item as a context shows it; `nil` if it has none.
    func picture(in context: NSManagedObjectContext, _ moment: String) throws -> PairPicture? {
        try context.performAndWait {
            guard let item = try found("Item", name, in: context) else { return nil }
            let parts = (item.value(forKey: "parts") as? NSOrderedSet)?.array as? [NSManagedObject] ?? []
            let tags = item.value(forKey: "tags") as? Set<NSManagedObject> ?? []
            let owner = item.value(forKey: "owner") as? NSManagedObject
            for part in parts {
                expect(part.value(forKey: "item") as? NSManagedObject === item, "\(moment): a part leads back")
            }
            for tag in tags {
                let items = tag.value(forKey: "items") as? Set<NSManagedObject> ?? []
                expect(items.contains(item), "\(moment): a tag leads back")
            }
            if let owner {
                let items = (owner.value(forKey: "items") as? NSOrderedSet)?.array as? [NSManagedObject] ?? []
                expectEqual(items.filter { $0 === item }.count, 1, "\(moment): the owner leads back")
            }
            func text(_ object: NSManagedObject) -> String { object.value(forKey: "name") as? String ?? "" }
            return PairPicture(
                number: item.value(forKey: "number") as? Int ?? -1,
                text: item.value(forKey: "text") as? String,
                blob: (item.value(forKey: "blob") as? Data)?.count ?? 0,
                owner: owner.map(text),
                parts: parts.map(text),
                tags: Set(tags.map(text))
            )
        }
    }

    /// Compares the item, and the answers to questions about it, with the reference.
    func check(_ moment: String) throws {
        expectEqual(try picture(in: context, moment), reference.seen, "\(moment)")
        try context.performAndWait {
            // If a new item was deleted, then its tags stay.
            if reference.seen != nil || reference.stored != nil {
                expectEqual(context.hasChanges, reference.isPending, "\(moment): whether there are changes")
            }
            for question in PairQuestion.all(reference.seen, name) {
                let request = NSFetchRequest<NSManagedObject>(entityName: question.entity)
                request.predicate = question.predicate
                let wanted = reference.seen != nil && question.isTrue ? 1 : 0
                // They take turns, as both cost a fetch.
                isCounting.toggle()
                let found = isCounting ? try context.count(for: request) : try context.fetch(request).count
                expectEqual(found, wanted, "\(moment): \(question.predicate)")
            }
        }
    }

    /// Compares the store with the reference, as a new context and another coordinator read it.
    func checkStore(_ moment: String) throws {
        let reader = stack.context("reader")
        expectEqual(try picture(in: reader, moment), reference.stored, "\(moment): the store")
    }
}
