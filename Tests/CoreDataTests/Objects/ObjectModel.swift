import CoreData
import TestSupport

/// A model for the tests of objects: every type of attribute, relationships of every shape, rules, and hooks.
enum ObjectModel {
    static func make() -> NSManagedObjectModel {
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

enum Mood: Int16 { case calm, merry, cross }
enum Kind: String { case plain, fancy }

@ManagedObject
class Sample: NSManagedObject {
    @Managed var int16: Int16
    @Managed var int32: Int32
    @Managed var int64: Int64
    @Managed var whole: Int
    @Managed var flag: Bool
    @Managed var double: Double
    @Managed var float: Float
    @Managed var text: String
    @Managed var date: Date
    @Managed var data: Data
    @Managed var uuid: UUID
    @Managed var decimal: Decimal
    @Managed var url: URL
    @Managed var mood: Mood
    @Managed var kind: Kind?
    @Managed var palette: NSArray?
    @Managed var colour: Colour?
    @Managed var address: [String: Any]?
    @Managed var draft: String?
    @Managed var tally: Int32
    @Managed("int16") var optionalInt16: Int16?
    @Managed("int32") var optionalInt32: Int32?
    @Managed("int64") var optionalInt64: Int64?
    @Managed("whole") var optionalWhole: Int?
    @Managed("flag") var optionalFlag: Bool?
    @Managed("double") var optionalDouble: Double?
    @Managed("float") var optionalFloat: Float?
    @Managed("text") var optionalText: String?
    @Managed("date") var optionalDate: Date?
    @Managed("data") var optionalData: Data?
    @Managed("uuid") var optionalUUID: UUID?
    @Managed("decimal") var optionalDecimal: Decimal?
    @Managed("url") var optionalURL: URL?
    @Managed("mood") var optionalMood: Mood?
}

@ManagedObject
final class SpecialSample: Sample {
    @Managed var extra: String?
}

@ManagedObject
final class Person: NSManagedObject {
    @Managed var name: String?
    @Managed var spouse: Person?
    @Managed var friends: Set<Person>
    @Managed var mother: Person?
    @Managed var children: [Person]
    @Managed var idols: [Person]
    @Managed var followers: Set<Person>
    @Managed var hero: Person?
    @Managed var rivals: Set<Person>

    convenience init(_ name: String, _ context: NSManagedObjectContext) {
        self.init(context: context)
        self.name = name
    }
}

@ManagedObject
final class Form: NSManagedObject {
    @Managed var title: String?
    @Managed var weight: Double?
    @Managed var age: Int16?
    @Managed var code: String?
    @Managed var memo: String?
    @Managed var colour: Colour?
    @Managed var nickname: String?
    @Managed var pages: Set<NSManagedObject>

    override class var propertyValidators: [String: PropertyValidator] {
        [
            "nickname": { _, value in
                guard let name = value as? String else { return }
                if name == "rude" { throw CocoaError(.validationStringPatternMatching) }
                value = name.trimmingCharacters(in: .whitespaces)
            }
        ]
    }
}

/// An object that writes down which of its hooks were called, and does in them what a test asks.
@ManagedObject
class Hooked: NSManagedObject {
    @Managed var name: String?
    @Managed var stamp: String?
    @Managed var count: Int32
    @Managed var greeting: String?
    @Managed var shout: String?
    @Managed var owner: Hooked?
    @Managed var things: Set<Hooked>
    @Managed var `guard`: Hooked?
    @Managed var guarded: Set<Hooked>
    @Managed var loose: Hooked?
    @Managed var looseOnes: Set<Hooked>

    var log: [String] = []
    var onWillSave: ((Hooked) -> Void)?
    var onPrepare: ((Hooked) -> Void)?

    func count(of hook: String) -> Int { log.count { $0 == hook } }

    override func awakeFromInsert() {
        super.awakeFromInsert()
        log.append("insert \(count)")
        stamp = "born"
    }
    override func awakeFromFetch() {
        super.awakeFromFetch()
        log.append("fetch")
        greeting = "hello " + (name ?? "")
        shout = name?.uppercased()
        if name == "relates" { owner = value(forKey: "guard") as? Hooked }
    }
    override func awake(fromSnapshotEvents flags: NSSnapshotEventType) { log.append("snapshot \(flags.rawValue)") }
    override func willSave() {
        log.append("willSave")
        onWillSave?(self)
    }
    override func didSave() { log.append("didSave \(objectID.isTemporaryID)") }
    override func prepareForDeletion() {
        log.append("prepare")
        onPrepare?(self)
    }
    override func willTurnIntoFault() { log.append("willTurnIntoFault") }
    override func didTurnIntoFault() { log.append("didTurnIntoFault") }
}

/// A value that only its own transformer can store.
final class Colour: NSObject {
    let red: UInt8
    let green: UInt8
    init(_ red: UInt8, _ green: UInt8) { (self.red, self.green) = (red, green) }
    override func isEqual(_ object: Any?) -> Bool {
        (object as? Colour).map { $0.red == red && $0.green == green } ?? false
    }
    override var hash: Int { Int(red) << 8 | Int(green) }
}

final class ColourTransformer: ValueTransformer {
    override func transformedValue(_ value: Any?) -> Any? {
        // Black is refused, so that a test has something that cannot be stored.
        guard let colour = value as? Colour, colour.red > 0 || colour.green > 0 else { return nil }
        return Data([colour.red, colour.green])
    }
    override func reverseTransformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data, data.count == 2 else { return nil }
        return Colour(data[0], data[1])
    }
}

extension Stack {
    /// A stack of the object tests' model.
    static func objects(_ kind: StoreKind) throws -> Stack { try Stack(kind, model: ObjectModel.make()) }

    /// Runs a block in a context of its own.
    func inContext<T>(_ body: (NSManagedObjectContext) throws -> T) rethrows -> T {
        let context = context()
        return try context.performAndWait { try body(context) }
    }
}

extension NSManagedObjectContext {
    /// All objects of a class.
    func all<T: NSManagedObject>(_ type: T.Type, sortedBy key: String? = nil) throws -> [T] {
        let request = NSFetchRequest<T>(entityName: String(describing: type))
        request.sortDescriptors = key.map { [NSSortDescriptor(key: $0, ascending: true)] }
        return try fetch(request)
    }

    /// The object of a class that an ID names.
    func object<T: NSManagedObject>(_ type: T.Type, _ id: NSManagedObjectID) throws -> T {
        guard let object = object(with: id) as? T else { throw CocoaError(.featureUnsupported) }
        return object
    }
}
