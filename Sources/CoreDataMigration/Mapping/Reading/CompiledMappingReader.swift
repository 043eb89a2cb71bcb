import CoreDataEssentials
import CoreDataModelFiles
import StrataArchives
import StrataPredicates

/// Turns a compiled mapping model, an archive, into mappings.
///
/// Objects are looked up by number, in the places where Apple's framework writes them; circular references are never
/// followed.
struct CompiledMappingReader {
    private let archive: KeyedArchive
    private let values: ArchivedValues
    private let budget = ReadingBudget()

    /// - Throws: The problem of the archive.
    static func mappings(in data: Data) throws(ModelError) -> [NSEntityMapping] {
        let archive: KeyedArchive
        do {
            archive = try KeyedArchive(data)
        } catch {
            throw ModelError(.malformed, "it is not an archive of a mapping model")
        }
        return try CompiledMappingReader(archive).mappings()
    }

    private init(_ archive: KeyedArchive) {
        self.archive = archive
        values = ArchivedValues(archive)
    }

    private func mappings() throws(ModelError) -> [NSEntityMapping] {
        guard let root = archive.object(archive.root), root.classNames.contains("NSMappingModel"),
            let numbers = root.object("NSEntityMappings")?.references("NS.objects")
        else {
            throw ModelError(.malformed, "it is not an archive of a mapping model")
        }
        try budget.spend(numbers.count)
        var mappings: [NSEntityMapping] = []
        for number in numbers {
            guard let object = archive.object(number), object.classNames.first == "NSEntityMapping" else {
                throw ModelError(.malformed, "one of its entity mappings is missing, or is of another class")
            }
            mappings.append(try mapping(object))
        }
        return mappings
    }

    private func mapping(_ object: KeyedArchive.Object) throws(ModelError) -> NSEntityMapping {
        let mapping = NSEntityMapping()
        mapping.name = text(object, "NSMappingName")
        mapping.sourceEntityName = text(object, "NSSourceEntityName")
        mapping.destinationEntityName = text(object, "NSDestinationEntityName")
        let name = mapping.effectiveName
        let number = object.integer("NSMappingType") ?? 0
        guard let type = UInt(exactly: number).flatMap(NSEntityMappingType.init) else {
            throw ModelError(.malformed, "mapping \"\(name)\" is of the unknown type \(number)")
        }
        mapping.mappingType = type
        mapping.sourceEntityVersionHash = try hash(of: object, field: "NSSourceEntityVersionHash", mapping: name)
        mapping.destinationEntityVersionHash = try hash(
            of: object,
            field: "NSDestinationEntityVersionHash",
            mapping: name
        )
        mapping.entityMigrationPolicyClassName = text(object, "NSEntityMigrationPolicyClassName")
        mapping.userInfo = try userInfo(object, name)
        mapping.sourceExpression = try expression(
            of: object,
            field: "NSSourceExpression",
            what: "the source expression",
            mapping: name
        )
        mapping.attributeMappings = try properties(of: object, field: "NSAttributeMappings", mapping: name)
        mapping.relationshipMappings = try properties(of: object, field: "NSRelationshipMappings", mapping: name)
        return mapping
    }

    private func properties(
        of object: KeyedArchive.Object,
        field: String,
        mapping: String
    ) throws(ModelError) -> [NSPropertyMapping] {
        guard let list = object.object(field) else { return [] }
        guard let numbers = list.references("NS.objects") else {
            throw ModelError(.malformed, "the property mappings of \"\(mapping)\" cannot be read")
        }
        try budget.spend(numbers.count)
        var properties: [NSPropertyMapping] = []
        for number in numbers {
            guard let member = archive.object(number), member.classNames.first == "NSPropertyMapping" else {
                throw ModelError(.malformed, "a property mapping of \"\(mapping)\" is missing, or is of another class")
            }
            let property = NSPropertyMapping()
            property.name = text(member, "NSDestinationPropertyName")
            let what = "the value expression of \"\(property.name ?? "")\""
            property.valueExpression = try expression(
                of: member,
                field: "NSValueExpression",
                what: what,
                mapping: mapping
            )
            property.userInfo = try userInfo(member, mapping)
            properties.append(property)
        }
        return properties
    }

    // MARK: - Fields

    private func text(_ object: KeyedArchive.Object, _ field: String) -> String? {
        object.string(field).flatMap { $0.isEmpty ? nil : $0 }
    }

    private func hash(
        of object: KeyedArchive.Object,
        field: String,
        mapping: String
    ) throws(ModelError) -> Data? {
        guard let number = object.reference(field), number != 0 else { return nil }
        guard let data = values.value(number) as? Data, data.count == 32 else {
            throw ModelError(.malformed, "a version hash of mapping \"\(mapping)\" is not 32 bytes")
        }
        return data
    }

    private func userInfo(_ object: KeyedArchive.Object, _ mapping: String) throws(ModelError) -> [AnyHashable: Any]? {
        guard let number = object.reference("NSUserInfo"), number != 0 else { return nil }
        guard let value = values.value(number) as? [AnyHashable: Any] else {
            throw ModelError(.malformed, "the user info of mapping \"\(mapping)\" cannot be read")
        }
        return value
    }

    private func expression(
        of object: KeyedArchive.Object,
        field: String,
        what: String,
        mapping: String
    ) throws(ModelError) -> NSExpression? {
        guard let number = object.reference(field), number != 0 else { return nil }
        do {
            return try ArchivedExpression(archive: archive, values: values, budget: budget).expression(number)
        } catch {
            throw ModelError(.malformed, "\(what) of mapping \"\(mapping)\" cannot be read: \(error.reason)")
        }
    }
}
