import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Properties by name")
struct KeyValueTests {
    @Test(arguments: StoreKind.allCases)
    func `values of every type go in and come out by name`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let uuid = UUID()
        let date = Date(timeIntervalSinceReferenceDate: 5)
        let url = try require(URL(string: "https://example.com"))
        try stack.inContext { context throws in
            let sample = NSEntityDescription.insertNewObject(forEntityName: "Sample", into: context)
            sample.setValue(NSNumber(value: 3), forKey: "int16")
            sample.setValue(UInt8(4), forKey: "int32")
            sample.setValue(5, forKey: "int64")
            sample.setValue(true, forKey: "flag")
            sample.setValue(2, forKey: "double")
            sample.setValue(Float(2.5), forKey: "float")
            sample.setValue("text", forKey: "text")
            sample.setValue(date, forKey: "date")
            sample.setValue(Data([1]), forKey: "data")
            sample.setValue(uuid, forKey: "uuid")
            sample.setValue(NSDecimalNumber(string: "1.25"), forKey: "decimal")
            sample.setValue(url, forKey: "url")
            try context.save()
            context.refresh(sample, mergeChanges: false)
            expectEqual(sample.value(forKey: "int16") as? Int16, 3)
            expectEqual(sample.value(forKey: "int32") as? NSNumber, 4)
            expectEqual(sample.value(forKey: "int64") as? Int, 5)
            expectEqual(sample.value(forKey: "flag") as? Bool, true)
            expectEqual(sample.value(forKey: "double") as? Double, 2)
            expectEqual(sample.value(forKey: "float") as? Float, 2.5)
            expectEqual(sample["text"] as? String, "text")
            expectEqual(sample.value(forKey: "date") as? Date, date)
            expectEqual(sample.value(forKey: "data") as? Data, Data([1]))
            expectEqual(sample.value(forKey: "uuid") as? UUID, uuid)
            expectEqual(sample.value(forKey: "decimal") as? NSDecimalNumber, NSDecimalNumber(string: "1.25"))
            expectEqual(sample.value(forKey: "url") as? URL, url)
            sample["text"] = nil
            sample.setValue(NSNull(), forKey: "date")
            expect(sample.value(forKey: "text") == nil)
            expect(sample.value(forKey: "date") == nil)
            expect(sample.value(forKey: "objectID") as? NSManagedObjectID === sample.objectID)
        }
    }

    @Test
    func `Foundation's classes are taken where Swift's types are`() throws {
        let stack = try Stack.objects(.memory)
        try stack.inContext { context throws in
            let sample = Sample(context: context)
            sample.setValue(NSString(string: "text"), forKey: "text")
            sample.setValue(NSDate(timeIntervalSinceReferenceDate: 9), forKey: "date")
            sample.setValue(NSData(data: Data([7])), forKey: "data")
            let uuid = UUID()
            sample.setValue(try require(NSUUID(uuidString: uuid.uuidString)), forKey: "uuid")
            sample.setValue(try require(NSURL(string: "https://example.com")), forKey: "url")
            sample.setValue(Decimal(3), forKey: "decimal")
            sample.setValue(3.9, forKey: "int16")
            sample.setValue(NSNumber(value: 0.5), forKey: "double")
            expectEqual(sample.text, "text")
            expectEqual(sample.date, Date(timeIntervalSinceReferenceDate: 9))
            expectEqual(sample.data, Data([7]))
            expectEqual(sample.uuid, uuid)
            expectEqual(sample.url.absoluteString, "https://example.com")
            expectEqual(sample.decimal, 3)
            expectEqual(sample.int16, 3)
            expectEqual(sample.double, 0.5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships are objects and collections by name`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            let city = City(context: context)
            city.name = "Lagos"
            let (one, two) = (Photo(context: context), Photo(context: context))
            venue.setValue(city, forKey: "city")
            venue.setValue(NSOrderedSet(array: [two, one]), forKey: "photos")
            let tags = [TestSupport.Tag(context: context), TestSupport.Tag(context: context)]
            venue.setValue(NSSet(array: tags), forKey: "tags")
            expect(venue.value(forKey: "city") as? City === city)
            expectEqual((venue.value(forKey: "photos") as? NSOrderedSet)?.array as? [Photo], [two, one])
            expectEqual(venue.value(forKey: "tags") as? Set<TestSupport.Tag>, Set(tags))
            expectEqual(city.value(forKey: "venues") as? Set<Venue>, [venue])
            venue.setValue([one], forKey: "photos")
            expectEqual(venue.photos, [one])
            venue.setValue(Set([tags[0]]), forKey: "tags")
            expectEqual(venue.tags, [tags[0]])
            venue.setValue(nil, forKey: "tags")
            venue.setValue(nil, forKey: "city")
            expect(venue.tags.isEmpty)
            expect(city.venues.isEmpty)
            try context.save()
        }
    }

    @Test
    func `key paths lead through relationships, and several values are read and set at once`() throws {
        let stack = try Stack(.memory)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            let city = City(context: context)
            venue.setValuesForKeys(["name": "Bar", "city": city, "price": 4])
            venue.setValue("Silves", forKeyPath: "city.name")
            expectEqual(city.name, "Silves")
            expectEqual(venue.value(forKeyPath: "city.name") as? String, "Silves")
            let values = venue.dictionaryWithValues(forKeys: ["name", "site", "price"])
            expectEqual(values["name"] as? String, "Bar")
            expect(values["site"] is NSNull)
            expectEqual(values["price"] as? Int16, 4)
            let other = Venue(context: context)
            other.city = city
            other.price = 6
            expectEqual(venue.value(forKeyPath: "city.venues.price") as? NSSet, NSSet(array: [4, 6]))
            expectEqual(venue.value(forKeyPath: "city.venues.@max.price") as? Int, 6)
            expect(venue.value(forKeyPath: "licence.number") == nil)
            venue.setValue("1", forKeyPath: "licence.number")
            venue.mutableSetValue(forKeyPath: "city.venues").removeAllObjects()
            expectEqual(venue.city, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what an object knows of itself can be read by its key`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Lisbon"
            func truths() -> [String] {
                [
                    "isDeleted", "isFault", "isInserted", "isUpdated", "hasChanges", "hasPersistentChangedValues",
                    "deleted", "fault", "inserted", "updated",
                ].filter { city.value(forKey: $0) as? Bool == true }
            }
            expectEqual(truths(), ["isInserted", "hasChanges", "hasPersistentChangedValues", "inserted"])
            try context.save()
            expectEqual(truths(), [])
            city.name = "Faro"
            expectEqual(truths(), ["isUpdated", "hasChanges", "hasPersistentChangedValues", "updated"])
            expect(NSPredicate(format: "isUpdated == YES AND deleted == NO").evaluate(with: city))
            context.refresh(city, mergeChanges: false)
            expectEqual(truths(), ["isFault", "fault"])
            context.delete(city)
            let expected = ["isDeleted", "hasChanges", "hasPersistentChangedValues", "deleted"]
            expectEqual(truths().filter { !$0.hasSuffix("ault") }, expected)
            expect(city.value(forKey: "objectID") as? NSManagedObjectID === city.objectID)
            expectEqual(city.value(forKeyPath: "entity.name") as? String, "City")
            // A store has no such columns.
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "isUpdated == YES")
            expectThrows(CocoaError.self) { try context.fetch(request) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a primitive value is set without marking the object, and saved with its other changes`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let object = Hooked(context: context)
            object.name = "a"
            try context.save()
            return object.objectID
        }
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            object.setPrimitiveValue("quiet", forKey: "stamp")
            object.setPrimitiveValue("quiet too", forKey: "shout")
            expectEqual(object.stamp, "quiet")
            expectEqual(object.primitiveValue(forKey: "stamp") as? String, "quiet")
            expect(!object.hasChanges)
            expect(!context.hasChanges)
            object.name = "b"
            expectEqual(object.changedValues()["stamp"] as? String, "quiet")
            try context.save()
            expect(object.changedValues().isEmpty)
            object.willChangeValue(forKey: "stamp")
            object.setPrimitiveValue("loud", forKey: "stamp")
            object.didChangeValue(forKey: "stamp")
            expect(object.isUpdated)
            expectEqual(object.changedValuesForCurrentEvent()["stamp"] as? String, "quiet")
            try context.save()
        }
        try stack.inContext { context throws in try expectEqual(context.object(Hooked.self, id).stamp, "loud") }
    }

    @Test
    func `a class that minds unmodelled properties is marked changed by them`() throws {
        let stack = try Stack.objects(.memory)
        try stack.inContext { context throws in
            let person = Person("p", context)
            try context.save()
            person.willChangeValue(forKey: "unknown")
            person.didChangeValue(forKey: "unknown")
            expect(!person.hasChanges)
            expect(Person.contextShouldIgnoreUnmodeledPropertyChanges)
            person.willChangeValue(forKey: "friends", withSetMutation: .union, using: [])
            person.didChangeValue(forKey: "friends", withSetMutation: .union, using: [])
            expect(person.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `announced changes of an ordered relationship are saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in venue.photos = [Photo(context: context)] }
        try stack.change(id, Venue.self) { venue, context in
            let photos = NSMutableOrderedSet(orderedSet: venue.primitiveValue(forKey: "photos") as? NSOrderedSet ?? [])
            venue.willChange(.insertion, valuesAt: IndexSet(integer: 0), forKey: "photos")
            expect(venue.isUpdated)
            let photo = Photo(context: context)
            photo.title = "first"
            photos.insert(photo, at: 0)
            venue.setPrimitiveValue(photos, forKey: "photos")
            venue.didChange(.insertion, valuesAt: IndexSet(integer: 0), forKey: "photos")
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map(\.title) }, ["first", nil])
        expectEqual([.setting, .insertion, .removal, .replacement].map(\NSKeyValueChange.rawValue), [1, 2, 3, 4])
    }

    @Test
    func `an override may answer for keys that the entity lacks`() throws {
        let entity = GuideModel.entity("Flexible", Flexible.self)
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(.memory, model: model)
        stack.inContext { context in
            let object = Flexible(context: context)
            object.setValue(1, forKey: "anything")
            expectEqual(object.value(forKey: "anything") as? Int, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a description has entity, ID and values, without firing a fault`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Tavira"
            let venue = Venue(context: context)
            venue.city = city
            expect(city.description.contains("Tavira"))
            expect(venue.description.contains("City") || venue.description.contains("unsaved"))
            try context.save()
            expect(venue.description.contains("Venue/p1"))
            context.refresh(city, mergeChanges: false)
            expect(city.description.contains("<fault>"))
            expect(city.isFault)
        }
    }
}

final class Flexible: NSManagedObject {
    private var others: [String: Any] = [:]
    override func value(forUndefinedKey key: String) -> Any? { others[key] }
    override func setValue(_ value: Any?, forUndefinedKey key: String) { others[key] = value }
}

@Suite("Keys in the spelling of their setters")
struct SetterKeyTests {
    @Test(arguments: StoreKind.allCases)
    func `a key with a capital sets the property whose setter it names`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.setValue("Coliseu", forKey: "Name")
            expectEqual(venue.name, "Coliseu")
            venue.setValuesForKeys(["Price": 3, "City": City(context: context)])
            expectEqual(venue.price, 3)
            expect(venue.city != nil)
            venue.setValue([Tag(context: context)], forKey: "Tags")
            expectEqual(venue.tags.count, 1)
            venue.city?.name = "x"
            venue.setValue("Porto", forKeyPath: "city.Name")
            expectEqual(venue.city?.name, "Porto")
            expect(venue.isInserted)
            try context.save()
            venue.setValue("Rivoli", forKey: "Name")
            expect(venue.hasPersistentChangedValues)
        }
    }
}
