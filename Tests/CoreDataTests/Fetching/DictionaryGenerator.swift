import CoreData
import TestSupport

/// Random fetches of dictionaries about the entities of any model.
struct DictionaryGenerator {
    private(set) var fetches: FetchGenerator
    private var lastName = 0

    init(_ fetches: FetchGenerator) {
        self.fetches = fetches
    }

    mutating func specification() -> FetchSpecification {
        var specification = FetchSpecification()
        let entity = fetches.entity()
        specification.entity = entity
        specification.resultType = .dictionaryResultType
        if chance(60) { specification.predicate = fetches.predicate(about: entity, depth: 1) }
        specification.includesSubentities = chance(80)
        if chance(30) { specification.fetchLimit = below(5) }
        if chance(20) { specification.fetchOffset = below(3) }
        switch below(5) {
        case 0: makeWhole(entity, &specification)
        case 1, 2: makeGroups(entity, &specification)
        default:
            let columns = (0...below(3)).map { _ in property(of: entity) }
            specification.propertiesToFetch = columns
            specification.returnsDistinctResults = chance(50)
            specification.sortDescriptors = (0..<below(3)).map { _ in
                sort(by: chance(50) ? path(of: entity).keyPath : name(of: pick(columns)))
            }
        }
        return specification
    }

    /// Aggregates of all objects.
    private mutating func makeWhole(_ entity: NSEntityDescription, _ specification: inout FetchSpecification) {
        specification.propertiesToFetch = (0...below(3)).map { _ in aggregate(of: entity) }
    }

    /// Aggregates of groups, some of which are kept, in some order.
    private mutating func makeGroups(_ entity: NSEntityDescription, _ specification: inout FetchSpecification) {
        let groups = (0...below(2)).map { _ in property(of: entity) }
        let aggregates: [Any] = (0...below(2)).map { _ in aggregate(of: entity) }
        let columns: [Any] = groups.filter { _ in chance(80) } + aggregates
        specification.propertiesToGroupBy = groups
        specification.propertiesToFetch = columns
        specification.returnsDistinctResults = chance(30)
        specification.sortDescriptors = columns.filter { _ in chance(40) }.map { sort(by: name(of: $0)) }
        guard chance(40) else { return }
        let limit = NSExpression(forConstantValue: below(4))
        specification.havingPredicate = NSComparisonPredicate(
            leftExpression: NSExpression(forVariable: count(in: &specification, entity)),
            rightExpression: limit,
            modifier: .direct,
            type: chance(50) ? .greaterThan : .lessThanOrEqualTo,
            options: []
        )
    }

    /// The name of a number among the columns.
    private mutating func count(in specification: inout FetchSpecification, _ entity: NSEntityDescription) -> String {
        let count = column(NSExpression(forFunction: "count:", arguments: [path(of: entity)]))
        specification.propertiesToFetch?.append(count)
        return count.name
    }

    // MARK: - Properties

    /// An attribute, a to-one relationship, a key path or a computed column.
    private mutating func property(of entity: NSEntityDescription) -> Any {
        switch below(4) {
        case 0: return column(fetches.expression(about: entity, depth: 2))
        case 1:
            let relationships = entity.relationshipsByName.values.filter { !$0.isToMany }.map(\.name).sorted()
            return relationships.isEmpty ? "objectID" : pick(relationships)
        default: return path(of: entity).keyPath
        }
    }

    private mutating func aggregate(of entity: NSEntityDescription) -> NSExpressionDescription {
        switch below(6) {
        case 0: return column(NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: "objectID")]))
        case 1: return column(NSExpression(forFunction: "count:", arguments: [path(of: entity)]))
        case 2:
            let operand = fetches.expression(about: entity, depth: 1)
            return column(NSExpression(forFunction: pick(["min:", "max:", "count:"]), arguments: [operand]))
        case 3: return column(NSExpression(forFunction: pick(["min:", "max:"]), arguments: [path(of: entity)]))
        default:
            let sum = NSExpression(forFunction: pick(["sum:", "average:"]), arguments: [number(of: entity)])
            guard chance(30) else { return column(sum) }
            let three = NSExpression(forConstantValue: 3)
            return column(NSExpression(forFunction: "add:to:", arguments: [sum, three]))
        }
    }

    /// The key path of an attribute, its own or of an object that it points at.
    private mutating func path(of entity: NSEntityDescription) -> NSExpression {
        path(of: entity) { _ in true }
    }

    private mutating func number(of entity: NSEntityDescription) -> NSExpression {
        path(of: entity) { attribute in
            switch attribute.type {
            // The sum of decimals depends on their order, which nothing says.
            case .boolean, .integer16, .integer32, .integer64, .double, .float: true
            default: false
            }
        }
    }

    private mutating func path(
        of entity: NSEntityDescription,
        where isFit: (NSAttributeDescription) -> Bool
    ) -> NSExpression {
        func names(_ entity: NSEntityDescription) -> [String] {
            entity.attributesByName.values.filter {
                // Contents of files, archives and whole composite attributes have no order.
                !$0.allowsExternalBinaryDataStorage && $0.type != .transformable && $0.type != .composite && isFit($0)
            }.map(\.name).sorted()
        }
        let steps = entity.relationshipsByName.values.filter { !$0.isToMany }.sorted { $0.name < $1.name }
        if chance(30), !steps.isEmpty {
            let step = pick(steps)
            if let destination = step.destinationEntity, !names(destination).isEmpty {
                return NSExpression(forKeyPath: step.name + "." + pick(names(destination)))
            }
        }
        let own = names(entity)
        return NSExpression(forKeyPath: own.isEmpty ? "serial" : pick(own))
    }

    private mutating func column(_ expression: NSExpression) -> NSExpressionDescription {
        lastName += 1
        let column = NSExpressionDescription()
        column.name = "computed\(lastName)"
        column.expression = expression
        return column
    }

    private func name(of property: Any) -> String {
        (property as? NSExpressionDescription)?.name ?? property as? String ?? "serial"
    }

    private mutating func sort(by name: String) -> NSSortDescriptor {
        NSSortDescriptor(key: name, ascending: chance(60))
    }

    // MARK: - Chance

    private mutating func chance(_ percent: Int) -> Bool { fetches.random.chance(percent) }
    private mutating func below(_ limit: Int) -> Int { fetches.random.below(limit) }
    private mutating func pick<Element>(_ elements: [Element]) -> Element { fetches.random.pick(elements) }
}
