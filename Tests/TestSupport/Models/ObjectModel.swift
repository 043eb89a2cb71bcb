import CoreData

/// A model for the tests of objects: every type of attribute, relationships of every shape, rules, and hooks.
package enum ObjectModel {
    package static func make() -> NSManagedObjectModel {
        ValueTransformer.setValueTransformer(ColourTransformer(), forName: NSValueTransformerName("ColourTransformer"))
        let sample = GuideModel.entity("Sample", Sample.self)
        sample.properties =
            scalars() + [
                GuideModel.attribute("palette", .transformable), colour(), address(),
                GuideModel.transient("draft", .string), GuideModel.transient("tally", .integer32),
                GuideModel.transient("anything", .undefined),
            ]
        let special = GuideModel.entity("SpecialSample", SpecialSample.self)
        special.properties = [GuideModel.attribute("extra", .string, default: "more")]
        sample.subentities = [special]

        let person = GuideModel.entity("Person", Person.self)
        person.properties = [GuideModel.attribute("name", .string)]
        reflexive(person, "spouse", .one(.nullifyDeleteRule))
        reflexive(person, "friends", .many(.nullifyDeleteRule))
        GuideModel.relate(
            person,
            "mother",
            .one(.nullifyDeleteRule),
            person,
            "children",
            .ordered(.nullifyDeleteRule)
        )
        GuideModel.relate(person, "idols", .ordered(.nullifyDeleteRule), person, "followers", .many(.nullifyDeleteRule))
        person.properties.append(GuideModel.relationship("hero", .one(.nullifyDeleteRule), person))
        person.properties.append(GuideModel.relationship("rivals", .many(.nullifyDeleteRule), person))

        let narrow = GuideModel.entity("Narrow", Narrow.self)
        narrow.properties = [
            GuideModel.attribute("int16", .integer16), GuideModel.attribute("text", .string),
            GuideModel.transient("draft", .string),
            GuideModel.relationship("others", .ordered(.nullifyDeleteRule), narrow),
        ]

        let model = NSManagedObjectModel()
        model.entities = [sample, special, person, narrow] + rules() + hooks()
        return model
    }

    private static func scalars() -> [NSPropertyDescription] {
        [
            GuideModel.attribute("int16", .integer16), GuideModel.attribute("int32", .integer32),
            GuideModel.attribute("int64", .integer64), GuideModel.attribute("whole", .integer32),
            GuideModel.attribute("flag", .boolean), GuideModel.attribute("double", .double),
            GuideModel.attribute("float", .float), GuideModel.attribute("text", .string),
            GuideModel.attribute("date", .date), GuideModel.attribute("data", .binaryData),
            GuideModel.attribute("uuid", .uuid), GuideModel.attribute("decimal", .decimal),
            GuideModel.attribute("url", .uri), GuideModel.attribute("mood", .integer16),
            GuideModel.attribute("kind", .string),
        ]
    }

    private static func colour() -> NSAttributeDescription {
        let colour = GuideModel.attribute("colour", .transformable)
        colour.valueTransformerName = "ColourTransformer"
        return colour
    }

    private static func address() -> NSAttributeDescription {
        let place = NSCompositeAttributeDescription()
        place.name = "place"
        place.elements = [GuideModel.attribute("town", .string), GuideModel.attribute("zip", .integer32)]
        let address = NSCompositeAttributeDescription()
        address.name = "address"
        address.elements = [GuideModel.attribute("street", .string), place]
        return address
    }

    private static func reflexive(_ entity: NSEntityDescription, _ name: String, _ side: GuideModel.Side) {
        let relationship = GuideModel.relationship(name, side, entity)
        relationship.inverseRelationship = relationship
        entity.properties.append(relationship)
    }

    private static func rules() -> [NSEntityDescription] {
        let form = GuideModel.entity("Form", Form.self)
        let page = GuideModel.entity("Page", NSManagedObject.self)
        let age = GuideModel.attribute("age", .integer16)
        age.setValidationPredicates(
            [NSPredicate(format: "SELF >= 18"), NSPredicate(format: "SELF <= 99")],
            withValidationWarnings: [1620, 1610]
        )
        let code = GuideModel.attribute("code", .string)
        code.setValidationPredicates(
            [NSPredicate(format: "SELF MATCHES %@", "[A-Z]+")],
            withValidationWarnings: ["must be capitals"]
        )
        let memo = GuideModel.transient("memo", .string)
        memo.setValidationPredicates([NSPredicate(format: "length <= 5")], withValidationWarnings: [1660])
        let colour = Self.colour()
        form.properties = [
            GuideModel.attribute("title", .string, optional: false),
            GuideModel.attribute("weight", .double, optional: false),
            age, code, memo, colour, GuideModel.attribute("nickname", .string),
        ]
        GuideModel.relate(form, "pages", .many(.nullifyDeleteRule), page, "form", .one(.nullifyDeleteRule))
        let pages = form.properties.last as? NSRelationshipDescription
        pages?.minCount = 1
        pages?.maxCount = 3
        pages?.isOptional = false
        return [form, page]
    }

    private static func hooks() -> [NSEntityDescription] {
        let hooked = GuideModel.entity("Hooked", Hooked.self)
        hooked.properties = [
            GuideModel.attribute("name", .string), GuideModel.attribute("stamp", .string),
            GuideModel.attribute("count", .integer32, default: 7), GuideModel.attribute("greeting", .string),
            GuideModel.transient("shout", .string),
        ]
        GuideModel.relate(hooked, "owner", .one(.nullifyDeleteRule), hooked, "things", .many(.cascadeDeleteRule))
        GuideModel.relate(hooked, "guard", .one(.nullifyDeleteRule), hooked, "guarded", .many(.denyDeleteRule))
        GuideModel.relate(hooked, "loose", .one(.noActionDeleteRule), hooked, "looseOnes", .many(.noActionDeleteRule))
        return [hooked]
    }
}

package enum Mood: Int16 { case calm, merry, cross }
package enum Kind: String { case plain, fancy }

@ManagedObject
package class Sample: NSManagedObject {
    @Managed package var int16: Int16
    @Managed package var int32: Int32
    @Managed package var int64: Int64
    @Managed package var whole: Int
    @Managed package var flag: Bool
    @Managed package var double: Double
    @Managed package var float: Float
    @Managed package var text: String
    @Managed package var date: Date
    @Managed package var data: Data
    @Managed package var uuid: UUID
    @Managed package var decimal: Decimal
    @Managed package var url: URL
    @Managed package var mood: Mood
    @Managed package var kind: Kind?
    @Managed package var palette: NSArray?
    @Managed package var colour: Colour?
    @Managed package var address: [String: Any]?
    @Managed package var draft: String?
    @Managed package var tally: Int32
    @Managed("int16") package var optionalInt16: Int16?
    @Managed("int32") package var optionalInt32: Int32?
    @Managed("int64") package var optionalInt64: Int64?
    @Managed("whole") package var optionalWhole: Int?
    @Managed("flag") package var optionalFlag: Bool?
    @Managed("double") package var optionalDouble: Double?
    @Managed("float") package var optionalFloat: Float?
    @Managed("text") package var optionalText: String?
    @Managed("date") package var optionalDate: Date?
    @Managed("data") package var optionalData: Data?
    @Managed("uuid") package var optionalUUID: UUID?
    @Managed("decimal") package var optionalDecimal: Decimal?
    @Managed("url") package var optionalURL: URL?
    @Managed("mood") package var optionalMood: Mood?
    @Managed("colour") package var firmColour: Colour
}

@ManagedObject
package final class SpecialSample: Sample {
    @Managed package var extra: String?
}

@ManagedObject
package final class Person: NSManagedObject {
    @Managed package var name: String?
    @Managed package var spouse: Person?
    @Managed package var friends: Set<Person>
    @Managed package var mother: Person?
    @Managed package var children: [Person]
    @Managed package var idols: [Person]
    @Managed package var followers: Set<Person>
    @Managed package var hero: Person?
    @Managed package var rivals: Set<Person>

    package convenience init(_ name: String, _ context: NSManagedObjectContext) {
        self.init(context: context)
        self.name = name
    }
}

@ManagedObject
package final class Form: NSManagedObject {
    @Managed package var title: String?
    @Managed package var weight: Double?
    @Managed package var age: Int16?
    @Managed package var code: String?
    @Managed package var memo: String?
    @Managed package var colour: Colour?
    @Managed package var nickname: String?
    @Managed package var pages: Set<NSManagedObject>

    package override class var propertyValidators: [String: PropertyValidator] {
        [
            "nickname": { _, value in
                guard let name = value as? String else { return }
                if name == "rude" { throw CocoaError(.validationStringPatternMatching) }
                value = name.trimmingCharacters(in: .whitespaces)
            }
        ]
    }
}

/// An object that records the calls of its hooks, and runs a test's code in them.
@ManagedObject
package class Hooked: NSManagedObject {
    @Managed package var name: String?
    @Managed package var stamp: String?
    @Managed package var count: Int32
    @Managed package var greeting: String?
    @Managed package var shout: String?
    @Managed package var owner: Hooked?
    @Managed package var things: Set<Hooked>
    @Managed package var `guard`: Hooked?
    @Managed package var guarded: Set<Hooked>
    @Managed package var loose: Hooked?
    @Managed package var looseOnes: Set<Hooked>

    package var log: [String] = []
    package var onWillSave: ((Hooked) -> Void)?
    package var onPrepare: ((Hooked) -> Void)?
    package var onSnapshot: ((Hooked) -> Void)?

    package func count(of hook: String) -> Int { log.count { $0 == hook } }

    package override func awakeFromInsert() {
        super.awakeFromInsert()
        log.append("insert \(count)")
        stamp = "born"
    }
    package override func awakeFromFetch() {
        super.awakeFromFetch()
        log.append("fetch")
        greeting = "hello " + (name ?? "")
        shout = name?.uppercased()
        if name == "relates" { owner = value(forKey: "guard") as? Hooked }
    }
    package override func awake(fromSnapshotEvents flags: NSSnapshotEventType) {
        log.append("snapshot \(flags.rawValue)")
        onSnapshot?(self)
    }
    package override func willSave() {
        log.append("willSave")
        onWillSave?(self)
    }
    package override func didSave() { log.append("didSave \(objectID.isTemporaryID)") }
    package override func prepareForDeletion() {
        log.append("prepare")
        onPrepare?(self)
    }
    package override func willTurnIntoFault() { log.append("willTurnIntoFault") }
    package override func didTurnIntoFault() { log.append("didTurnIntoFault") }
}

/// A value that only its transformer can store.
package final class Colour: NSObject {
    package let red: UInt8
    package let green: UInt8
    package init(_ red: UInt8, _ green: UInt8) { (self.red, self.green) = (red, green) }
    package override func isEqual(_ object: Any?) -> Bool {
        (object as? Colour).map { $0.red == red && $0.green == green } ?? false
    }
    package override var hash: Int { Int(red) << 8 | Int(green) }
}

package final class ColourTransformer: ValueTransformer {
    package override func transformedValue(_ value: Any?) -> Any? {
        // Black is refused, so that tests have a value that cannot be stored.
        guard let colour = value as? Colour, colour.red > 0 || colour.green > 0 else { return nil }
        return Data([colour.red, colour.green])
    }
    package override func reverseTransformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data, data.count == 2 else { return nil }
        return Colour(data[0], data[1])
    }
}

extension Stack {
    /// A stack of the object tests' model.
    package static func objects(_ kind: StoreKind) throws -> Stack { try Stack(kind, model: ObjectModel.make()) }

    /// Runs a block in a new context.
    package func inContext<T>(_ body: (NSManagedObjectContext) throws -> T) rethrows -> T {
        let context = context()
        return try context.performAndWait { try body(context) }
    }
}

extension NSManagedObjectContext {
    /// All objects of a class.
    package func all<T: NSManagedObject>(_ type: T.Type, sortedBy key: String? = nil) throws -> [T] {
        let request = NSFetchRequest<T>(entityName: String(describing: type))
        request.sortDescriptors = key.map { [NSSortDescriptor(key: $0, ascending: true)] }
        return try fetch(request)
    }

    /// The object with an ID, as its class.
    package func object<T: NSManagedObject>(_ type: T.Type, _ id: NSManagedObjectID) throws -> T {
        guard let object = object(with: id) as? T else { throw CocoaError(.featureUnsupported) }
        return object
    }
}

/// A class whose properties differ in type from the entity's attributes.
package final class Narrow: NSManagedObject {
    @Managed package var int16: Int
    @Managed package var nonsense: Int16
    @Managed package var text: Int32
    @Managed package var draft: Int16
    @Managed("others") package var friend: Narrow?
    @Managed package var others: Set<Narrow>
    @Managed("others") package var wrongOthers: [Person]
}
