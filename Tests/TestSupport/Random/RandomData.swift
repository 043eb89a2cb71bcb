import CoreData

/// Random values and objects.
///
/// There are few values of each type, so that things coincide.
package enum RandomData {
    package static let strings = [
        "", "a", "A", "abc", "ABC", "äbc", "a\u{308}bc", "b*", "straße", "STRASSE", "xabcx", "İ", "ı", "a\u{0}b", "abd",
        "ａ", "\u{10FFFF}", "か", "が",
    ]
    // A text with U+0000 cannot be kept there.
    .filter { !StoreKind.isPostgreSQL || !$0.utf8.contains(0) }
    package static let doubles: [Double] = [0, -0.5, 0.5, 1, 2, 2.5, -3, 1e300, .infinity, 3]
    /// The values that predicates are given; no store keeps the last one.
    package static let comparedDoubles: [Double] = Array(doubles.dropLast()) + [.nan]
    /// The last ones have more digits than a double has: a file keeps the nearest double, and two of them have the same.
    ///
    /// Whole ones in 64 bits are left out, because a file keeps their digits, and sorts and groups by them; see
    /// `LongDecimalTests`.
    package static let decimals = [
        "0", "1", "2", "-1", "0.5", "2.5", "10.11", "3.03", "-0.1", "12345678901234567890", "12345678901234567891",
        "-98765432109876543210.5", "0.12345678901234567890123", "12345678901234567890123456789012345678",
    ].compactMap { Decimal(string: $0) }
    package static let wholeNumbers: [Int64] = [0, 1, 2, 3, -1, -2, 7]
    package static let hugeNumbers: [Int64] = [0, 1, 3, .max, 1 << 53, (1 << 53) + 1, 1 << 40]
    package static let dates: [Double] = [0, 1, 2, 2.5, -1, 800_000_000.125]
    package static let uuids = [
        "E621E1F8-C36C-495A-93FC-0C247A3E6E5F", "00000000-0000-0000-0000-000000000001",
        "FFFFFFFF-0000-0000-0000-000000000001",
    ].compactMap(UUID.init(uuidString:))
    static let data = [Data(), Data([0]), Data([1, 2]), Data([1]), Data([255])]
    static let urls = ["http://x/0", "http://x/1", "file:///abc"].compactMap(URL.init(string:))

    /// A value for an attribute, often nil.
    static func value(for attribute: NSAttributeDescription, _ random: inout SeededRandom) -> Any? {
        if random.chance(20) { return nil }
        switch attribute.type {
        case .boolean: return random.chance(50)
        case .integer16: return Int16(random.pick(wholeNumbers))
        case .integer32: return Int32(random.pick(wholeNumbers))
        case .integer64: return random.pick(hugeNumbers)
        case .double: return random.pick(doubles)
        case .float: return Float(random.pick(Array(doubles.prefix(7))))
        case .decimal: return NSDecimalNumber(decimal: random.pick(decimals))
        case .date: return Date(timeIntervalSinceReferenceDate: random.pick(dates))
        case .string: return random.pick(strings)
        case .uri: return random.pick(urls)
        case .uuid: return random.pick(uuids)
        case .binaryData: return random.pick(data)
        case .transformable: return ["x"] as NSArray
        default: return nil
        }
    }

    /// Inserts objects of all entities that are not abstract, with random values and relationships.
    @discardableResult
    package static func populate(
        _ context: NSManagedObjectContext,
        _ model: NSManagedObjectModel,
        count: Int,
        _ random: inout SeededRandom
    ) -> [NSManagedObject] {
        var objects: [NSManagedObject] = []
        for entity in model.entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") }) where !entity.isAbstract {
            for _ in 0..<count { objects.append(NSManagedObject(entity: entity, insertInto: context)) }
        }
        for (index, object) in objects.enumerated() {
            object.setValue(index, forKey: "serial")
            randomize(object, among: objects, &random)
        }
        return objects
    }

    /// Gives an object new values, and new relations to some of the others.
    package static func randomize(
        _ object: NSManagedObject,
        among others: [NSManagedObject],
        _ random: inout SeededRandom
    ) {
        for property in object.entity.properties.sorted(by: { $0.name < $1.name }) {
            guard property.name != "serial", random.chance(90) else { continue }
            set(property, of: object, among: others, &random)
        }
    }

    /// Gives one property a new value.
    package static func set(
        _ property: NSPropertyDescription,
        of object: NSManagedObject,
        among others: [NSManagedObject],
        _ random: inout SeededRandom
    ) {
        switch property {
        case let composite as NSCompositeAttributeDescription:
            var values: [String: Any] = [:]
            for element in composite.elements { values[element.name] = value(for: element, &random) }
            object.setValue(values, forKey: property.name)
        case let attribute as NSAttributeDescription:
            object.setValue(value(for: attribute, &random), forKey: property.name)
        case let relationship as NSRelationshipDescription:
            guard let destination = relationship.destinationEntity else { return }
            let candidates = others.filter { $0.entity.isKindOf(entity: destination) && !$0.isDeleted }
            guard relationship.isToMany else {
                let target = random.chance(75) && !candidates.isEmpty ? random.pick(candidates) : nil
                return object.setValue(target, forKey: property.name)
            }
            var members = candidates.filter { _ in random.chance(12) }
            if relationship.inverseRelationship == nil {
                // The key of the owner is in the member's row, so a member has one owner at most.
                let taken = others.filter { $0 !== object && $0.entity.isKindOf(entity: relationship.entity) }
                    .compactMap { $0.value(forKey: property.name) as? NSSet }
                members.removeAll { member in taken.contains { $0.contains(member) } }
            }
            let value: Any = relationship.isOrdered ? NSOrderedSet(array: members) : NSSet(array: members)
            object.setValue(value, forKey: property.name)
        default: break
        }
    }
}
