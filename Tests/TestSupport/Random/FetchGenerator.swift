import CoreData
import StrataPredicates

/// Random predicates and orders for the entities of any model.
package struct FetchGenerator {
    package var random: SeededRandom
    private let entities: [NSEntityDescription]
    /// The objects that predicates may refer to.
    package var objects: [NSManagedObjectID] = []
    /// The available variables: `SELF`, and the iterators of the surrounding subqueries, with the innermost last.
    private var scopes: [(name: String, entity: NSEntityDescription)] = []
    private var lastVariable = 0

    package init(seed: UInt64, model: NSManagedObjectModel) {
        random = SeededRandom(seed: seed)
        entities = model.entities.sorted { ($0.name ?? "") < ($1.name ?? "") }
    }

    private enum Family: CaseIterable {
        case number, string, date, uuid, data, url

        init?(_ attribute: NSAttributeDescription) {
            switch attribute.type {
            case .boolean, .integer16, .integer32, .integer64, .double, .float, .decimal: self = .number
            case .string: self = .string
            case .date: self = .date
            case .uuid: self = .uuid
            case .uri: self = .url
            case .binaryData where !attribute.allowsExternalBinaryDataStorage: self = .data
            default: return nil
            }
        }
    }

    // MARK: - Fetches

    package mutating func entity() -> NSEntityDescription { random.pick(entities) }

    /// A predicate about objects of an entity.
    package mutating func predicate(about entity: NSEntityDescription, depth: Int) -> NSPredicate {
        scopes = [("", entity)]
        return predicate(depth)
    }

    /// An expression about objects of an entity that has a single value.
    package mutating func expression(about entity: NSEntityDescription, depth: Int) -> NSExpression {
        scopes = [("", entity)]
        return value(family(), depth)
    }

    package mutating func sortDescriptors(for entity: NSEntityDescription) -> [NSSortDescriptor] {
        scopes = [("", entity)]
        return (0..<random.below(4)).map { _ in
            let ascending = random.chance(60)
            if random.chance(10), let key = objectPath(from: entity, atLeast: 1)?.keys {
                return NSSortDescriptor(key: key, ascending: ascending)
            }
            guard let path = attributePath(from: entity, where: { Family($0) != nil }) else {
                return NSSortDescriptor(key: "self", ascending: ascending)
            }
            guard path.attribute.type == .string else { return NSSortDescriptor(key: path.keys, ascending: ascending) }
            let selector = random.pick([
                "compare:", "compare:", "caseInsensitiveCompare:", "localizedCompare:",
                "localizedCaseInsensitiveCompare:",
                "localizedStandardCompare:",
            ])
            return NSSortDescriptor(key: path.keys, ascending: ascending, selector: NSSelectorFromString(selector))
        }
    }

    // MARK: - Paths

    /// A path from an entity to an object, along to-one relationships.
    private mutating func objectPath(
        from entity: NSEntityDescription,
        atLeast minimum: Int
    ) -> (keys: String, entity: NSEntityDescription)? {
        var keys: [String] = []
        var current = entity
        while keys.count < minimum || (keys.count < 3 && random.chance(25)) {
            let steps = relationships(of: current) { !$0.isToMany }
            guard !steps.isEmpty else { break }
            let step = random.pick(steps)
            keys.append(step.name)
            current = step.destinationEntity ?? current
        }
        return keys.count < minimum ? nil : (keys.joined(separator: "."), current)
    }

    private mutating func attributePath(
        from entity: NSEntityDescription,
        where isFit: (NSAttributeDescription) -> Bool
    ) -> (keys: String, attribute: NSAttributeDescription)? {
        for _ in 0..<4 {
            guard let start = objectPath(from: entity, atLeast: 0) else { continue }
            let fitting = Self.attributes(of: start.entity).filter { isFit($0.attribute) }
            guard !fitting.isEmpty else { continue }
            let chosen = random.pick(fitting)
            return (start.keys.isEmpty ? chosen.keys : start.keys + "." + chosen.keys, chosen.attribute)
        }
        return nil
    }

    /// The attributes of an entity.
    ///
    /// Those of composite attributes have key paths.
    private static func attributes(of entity: NSEntityDescription) -> [(
        keys: String, attribute: NSAttributeDescription
    )] {
        entity.attributesByName.values.sorted { $0.name < $1.name }.flatMap { attribute in
            guard let composite = attribute as? NSCompositeAttributeDescription else {
                return [(attribute.name, attribute)]
            }
            return composite.elements.map { ("\(composite.name).\($0.name)", $0) }
        }
    }

    private func relationships(
        of entity: NSEntityDescription,
        where isFit: (NSRelationshipDescription) -> Bool
    ) -> [NSRelationshipDescription] {
        entity.relationshipsByName.values.filter(isFit).sorted { $0.name < $1.name }
    }

    /// A path from a variable to a collection, and the entity of its members.
    private mutating func collection() -> (
        expression: NSExpression, keys: String, scope: String, entity: NSEntityDescription
    )? {
        for _ in 0..<4 {
            let scope = scope()
            guard let start = objectPath(from: scope.entity, atLeast: 0) else { continue }
            let candidates = relationships(of: start.entity) { $0.isToMany }
            guard !candidates.isEmpty else { continue }
            let chosen = random.pick(candidates)
            let keys = start.keys.isEmpty ? chosen.name : start.keys + "." + chosen.name
            return (path(scope.name, keys), keys, scope.name, chosen.destinationEntity ?? start.entity)
        }
        return nil
    }

    /// A variable, which is mostly the innermost one.
    private mutating func scope() -> (name: String, entity: NSEntityDescription) {
        random.chance(75) ? scopes[scopes.count - 1] : random.pick(scopes)
    }

    private func path(_ variable: String, _ keys: String) -> NSExpression {
        if keys.isEmpty {
            return variable.isEmpty ? .expressionForEvaluatedObject() : NSExpression(forVariable: variable)
        }
        return variable.isEmpty
            ? NSExpression(forKeyPath: keys) : KeyPathFunction.make(NSExpression(forVariable: variable), keys)
    }

    // MARK: - Predicates

    private mutating func predicate(_ depth: Int) -> NSPredicate {
        if depth > 0, random.chance(55) {
            let members = (0..<(2 + random.below(2))).map { _ in predicate(depth - 1) }
            switch random.below(3) {
            case 0: return NSCompoundPredicate(andPredicateWithSubpredicates: members)
            case 1: return NSCompoundPredicate(orPredicateWithSubpredicates: members)
            default: return NSCompoundPredicate(notPredicateWithSubpredicate: members[0])
            }
        }
        switch random.below(16) {
        case 13: return entityTest() ?? plain(depth)
        case 14: return collectionMembership() ?? plain(depth)
        case 15: return random.chance(25) ? trivial() : membership()
        case 0, 1: return quantified(depth) ?? plain(depth)
        case 2: return membership()
        case 3: return reference() ?? plain(depth)
        case 4: return between()
        case 5: return nullTest()
        case 6, 7: return stringTest()
        case 8: return objects.isEmpty ? plain(depth) : self.reference() ?? plain(depth)
        default: return plain(depth)
        }
    }

    private func comparison(
        _ left: NSExpression,
        _ type: NSComparisonPredicate.Operator,
        _ right: NSExpression,
        _ options: NSComparisonPredicate.Options = [],
        _ modifier: NSComparisonPredicate.Modifier = .direct
    ) -> NSPredicate {
        NSComparisonPredicate(
            leftExpression: left,
            rightExpression: right,
            modifier: modifier,
            type: type,
            options: options
        )
    }

    private mutating func options() -> NSComparisonPredicate.Options {
        NSComparisonPredicate.Options(rawValue: random.pick([0, 0, 0, 1, 2, 3, 4, 8, 9]))
    }

    private mutating func orderOrEquality() -> NSComparisonPredicate.Operator {
        random.pick([
            .equalTo, .equalTo, .notEqualTo, .lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo,
        ])
    }

    private mutating func family() -> Family {
        random.chance(40) ? .number : (random.chance(50) ? .string : random.pick(Family.allCases))
    }

    private mutating func plain(_ depth: Int) -> NSPredicate {
        let family = family()
        let left = value(family, depth)
        let right = random.chance(60) ? constant(family) : value(family, depth)
        let options = options()
        return random.chance(85)
            ? comparison(left, orderOrEquality(), right, options) : comparison(right, orderOrEquality(), left, options)
    }

    private static let patterns = ["*", "a*", "?bc", "*b*", "", "b\\*", "str*e", "か*", "*\u{308}*"]
    private static let expressions = ["a.*", "[a-z]+", ".*B.*", "", "a|ab|abc", "ä.*"]

    private mutating func stringTest() -> NSPredicate {
        let left = value(random.chance(85) ? .string : .url, 1)
        let options = options()
        switch random.below(6) {
        case 0: return comparison(left, .like, NSExpression(forConstantValue: random.pick(Self.patterns)), options)
        case 1:
            return comparison(left, .matches, NSExpression(forConstantValue: random.pick(Self.expressions)), options)
        case 2:
            let test: NSComparisonPredicate.Operator = random.pick([.beginsWith, .endsWith, .contains, .in, .like])
            return comparison(left, test, value(.string, 0), options)
        default:
            return comparison(
                left,
                random.pick([.beginsWith, .beginsWith, .endsWith, .contains]),
                constant(.string),
                options
            )
        }
    }

    private mutating func between() -> NSPredicate {
        let family = family()
        let bounds = [constant(family), random.chance(30) ? value(family, 0) : constant(family)]
        return comparison(value(family, 1), .between, NSExpression(forAggregate: bounds), options())
    }

    private mutating func membership() -> NSPredicate {
        let family = family()
        // Lists are both written in the format and passed as one parameter.
        var members = (0..<random.below(random.chance(30) ? 14 : 5)).map { _ in constant(family) }
        if random.chance(20) { members.append(NSExpression(forConstantValue: nil)) }
        if random.chance(20) { members.append(value(family, 0)) }
        var set = NSExpression(forAggregate: members)
        if random.chance(20) {
            let other = NSExpression(forAggregate: [constant(family), constant(family)])
            set = NSExpression(kind: .setOperation(random.pick([.union, .intersect, .minus]), set, other))
        }
        if random.chance(30) { return comparison(set, .contains, value(family, 1), options()) }
        return comparison(value(family, 1), .in, set, options())
    }

    private mutating func nullTest() -> NSPredicate {
        let scope = scope()
        var left: NSExpression?
        if random.chance(35), let object = objectPath(from: scope.entity, atLeast: 1) {
            left = path(scope.name, object.keys)
        }
        if left == nil, random.chance(50), let any = attributePath(from: scope.entity, where: { _ in true }) {
            left = path(scope.name, any.keys)
        }
        let operand = left ?? value(family(), 1)
        return comparison(operand, random.chance(50) ? .equalTo : .notEqualTo, NSExpression(forConstantValue: nil))
    }

    private mutating func object() -> NSExpression {
        NSExpression(forConstantValue: objects.isEmpty ? nil : random.pick(objects))
    }

    private mutating func objectExpression() -> NSExpression {
        let scope = scope()
        guard let object = objectPath(from: scope.entity, atLeast: random.below(2)) else { return path(scope.name, "") }
        let plain = path(scope.name, object.keys)
        guard random.chance(12) else { return plain }
        let other = random.chance(50) ? self.object() : path(scope.name, "")
        return NSExpression(forConditional: predicate(0), trueExpression: plain, falseExpression: other)
    }

    private mutating func reference() -> NSPredicate? {
        switch random.below(5) {
        case 0: return comparison(objectExpression(), random.chance(50) ? .equalTo : .notEqualTo, object())
        case 1: return comparison(objectExpression(), random.chance(50) ? .equalTo : .notEqualTo, objectExpression())
        case 2:
            guard let collection = collection() else { return nil }
            return comparison(collection.expression, .contains, random.chance(50) ? object() : objectExpression())
        case 3:
            guard let collection = collection() else { return nil }
            return comparison(random.chance(50) ? object() : objectExpression(), .in, collection.expression)
        default:
            var members: [Any] = (0..<random.below(12)).compactMap { _ in objects.isEmpty ? nil : random.pick(objects) }
            if random.chance(20) { members.append(NSNull()) }
            return comparison(objectExpression(), .in, NSExpression(forConstantValue: members))
        }
    }

    private mutating func quantified(_ depth: Int) -> NSPredicate? {
        guard let collection = collection() else { return nil }
        let family = family()
        var source = collection.expression
        if random.chance(35), let filtered = subquery(depth) {
            source = filtered.expression
            guard let attribute = attributePath(from: filtered.entity, where: { Family($0) == family }) else {
                return nil
            }
            source = KeyPathFunction.make(source, attribute.keys)
        } else {
            var keys = collection.keys
            var entity = collection.entity
            if random.chance(20),
                let further = relationships(of: entity, where: \.isToMany).randomElement(using: &random)
            {
                keys += "." + further.name
                entity = further.destinationEntity ?? entity
            }
            guard let attribute = attributePath(from: entity, where: { Family($0) == family }) else { return nil }
            source = path(collection.scope, keys + "." + attribute.keys)
        }
        let result = quantified(source, family)
        // NONE means NOT ANY.
        return random.chance(25) ? NSCompoundPredicate(notPredicateWithSubpredicate: result) : result
    }

    /// A comparison of any or all members with a value of their family.
    private mutating func quantified(_ source: NSExpression, _ family: Family) -> NSPredicate {
        let modifier: NSComparisonPredicate.Modifier = random.chance(60) ? .any : .all
        let other = random.chance(70) ? constant(family) : value(family, 0)
        switch random.below(family == .string ? 10 : 5) {
        case 0:
            let members = (0..<random.below(12)).map { _ in constant(family) }
            return comparison(source, .in, NSExpression(forAggregate: members), options(), modifier)
        case 1:
            return comparison(
                source,
                .between,
                NSExpression(forAggregate: [constant(family), other]),
                options(),
                modifier
            )
        case 5, 6, 7:
            return comparison(
                source,
                random.pick([.beginsWith, .contains, .endsWith, .in]),
                other,
                options(),
                modifier
            )
        case 8:
            let pattern = NSExpression(forConstantValue: random.pick(Self.patterns))
            return comparison(source, .like, pattern, options(), modifier)
        case 9:
            let pattern = NSExpression(forConstantValue: random.pick(Self.expressions))
            return comparison(source, .matches, pattern, options(), modifier)
        default: return comparison(source, orderOrEquality(), other, options(), modifier)
        }
    }

    // MARK: - Entities

    /// A comparison of the entities of objects, or a test of an object's entity.
    private mutating func entityTest() -> NSPredicate? {
        let scope = scope()
        guard let start = objectPath(from: scope.entity, atLeast: random.below(2)) else { return nil }
        let own = path(scope.name, start.keys.isEmpty ? "entity" : start.keys + ".entity")
        switch random.below(5) {
        case 0, 1:
            let other = NSExpression(forConstantValue: random.pick(entities))
            return comparison(own, random.chance(70) ? .equalTo : .notEqualTo, other)
        case 2:
            let others = (0..<random.below(4)).map { _ in random.pick(entities) }
            return comparison(own, .in, NSExpression(forConstantValue: others))
        case 3:
            guard let other = objectPath(from: scope.entity, atLeast: 1) else { return nil }
            return comparison(own, random.chance(50) ? .equalTo : .notEqualTo, path(scope.name, other.keys + ".entity"))
        default:
            guard let cast = cast(path(scope.name, start.keys), from: start.entity) else { return nil }
            let nothing = NSExpression(forConstantValue: nil)
            return comparison(cast.expression, random.chance(50) ? .equalTo : .notEqualTo, nothing)
        }
    }

    /// An object as one of a sub-entity.
    private mutating func cast(
        _ object: NSExpression,
        from entity: NSEntityDescription
    ) -> (expression: NSExpression, entity: NSEntityDescription)? {
        let below = entities.filter { $0 !== entity && $0.isKindOf(entity: entity) }
        guard !below.isEmpty else { return nil }
        let target = random.pick(below)
        return (cast(object, target.name ?? ""), target)
    }

    // MARK: - Collections

    /// Membership in the values at a path through a collection, or in a set that is made of such collections.
    private mutating func collectionMembership() -> NSPredicate? {
        let family = family()
        guard let collection = collection(),
            let attribute = attributePath(from: collection.entity, where: { Family($0) == family })
        else { return nil }
        var set = path(collection.scope, collection.keys + "." + attribute.keys)
        if random.chance(50) {
            let constants = NSExpression(forAggregate: [constant(family), constant(family), constant(family)])
            let (first, second) = random.chance(50) ? (set, constants) : (constants, set)
            set = NSExpression(kind: .setOperation(random.pick([.union, .intersect, .minus]), first, second))
        }
        let member = random.chance(50) ? constant(family) : value(family, 0)
        return random.chance(50)
            ? comparison(member, .in, set, options()) : comparison(set, .contains, member, options())
    }

    /// A predicate that a program which composes predicates may produce.
    private mutating func trivial() -> NSPredicate {
        switch random.below(5) {
        case 0: return NSPredicate(value: random.chance(50))
        case 1: return NSCompoundPredicate(andPredicateWithSubpredicates: [])
        case 2: return NSCompoundPredicate(orPredicateWithSubpredicates: [])
        case 3: return NSCompoundPredicate(orPredicateWithSubpredicates: [plain(0)])
        default:
            let not = NSCompoundPredicate(notPredicateWithSubpredicate: plain(0))
            return NSCompoundPredicate(notPredicateWithSubpredicate: not)
        }
    }

    private mutating func subquery(_ depth: Int) -> (expression: NSExpression, entity: NSEntityDescription)? {
        guard scopes.count < 4, let collection = collection() else { return nil }
        lastVariable += 1
        let name = "v\(lastVariable)"
        scopes.append((name, collection.entity))
        let test = predicate(max(0, depth - 1))
        scopes.removeLast()
        let expression = NSExpression(forSubquery: collection.expression, usingIteratorVariable: name, predicate: test)
        return (expression, collection.entity)
    }

    // MARK: - Values

    private mutating func constant(_ family: Family) -> NSExpression {
        if random.chance(3) { return NSExpression(forConstantValue: nil) }
        let value: Any =
            switch family {
            case .number:
                random.chance(55)
                    ? random.pick(RandomData.wholeNumbers)
                    : (random.chance(25)
                        ? random.pick(RandomData.hugeNumbers) : random.pick(RandomData.comparedDoubles))
            case .string: random.pick(RandomData.strings)
            case .date: Date(timeIntervalSinceReferenceDate: random.pick(RandomData.dates))
            case .uuid: random.pick(RandomData.uuids)
            case .data: random.pick(RandomData.data)
            case .url: random.pick(RandomData.urls)
            }
        return NSExpression(forConstantValue: value)
    }

    private mutating func value(_ family: Family, _ depth: Int) -> NSExpression {
        if depth > 0, random.chance(6) {
            return NSExpression(
                forConditional: predicate(0),
                trueExpression: value(family, 0),
                falseExpression: random.chance(70) ? value(family, 0) : constant(family)
            )
        }
        if random.chance(5), let member = valueOfCast(family) { return member }
        if family == .number { return number(depth) }
        let scope = scope()
        if depth > 0, family == .date, random.chance(20) {
            let date = attributePath(from: scope.entity) { Family($0) == .date }
            guard let date else { return constant(family) }
            return NSExpression(
                forFunction: random.pick(["add:to:", "from:subtract:"]),
                arguments: [path(scope.name, date.keys), number(0)]
            )
        }
        guard let attribute = attributePath(from: scope.entity, where: { Family($0) == family }) else {
            return constant(family)
        }
        let plain = path(scope.name, attribute.keys)
        switch (family, depth > 0 ? random.below(10) : 9) {
        case (.string, 0), (.string, 1):
            return NSExpression(
                forFunction: random.pick(["uppercase:", "lowercase:", "canonical:"]),
                arguments: [plain]
            )
        case (.string, 2):
            return cast(random.chance(60) ? number(0) : value(random.pick([.uuid, .date, .string]), 0), "NSString")
        case (.date, 4): return cast(number(0), "NSDate")
        case (.uuid, 4): return cast(constant(.string), "NSUUID")
        case (_, 3): return NSExpression(forFunction: "noindex:", arguments: [plain])
        default: return plain
        }
    }

    /// An attribute that only a sub-entity has, for an object that may be of that entity.
    private mutating func valueOfCast(_ family: Family) -> NSExpression? {
        let scope = scope()
        guard let start = objectPath(from: scope.entity, atLeast: 0),
            let cast = cast(path(scope.name, start.keys), from: start.entity),
            let attribute = attributePath(from: cast.entity, where: { Family($0) == family })
        else { return nil }
        return KeyPathFunction.make(cast.expression, attribute.keys)
    }

    private func cast(_ operand: NSExpression, _ type: String) -> NSExpression {
        NSExpression(forFunction: "castObject:toType:", arguments: [operand, NSExpression(forConstantValue: type)])
    }

    private static let binary = [
        "add:to:", "from:subtract:", "multiply:by:", "divide:by:", "modulus:by:", "raise:toPower:", "bitwiseAnd:with:",
        "bitwiseOr:with:", "bitwiseXor:with:", "leftshift:by:", "rightshift:by:",
    ]
    private static let unary = [
        "abs:", "floor:", "ceiling:", "trunc:", "sqrt:", "onesComplement:", "ln:", "exp:", "log:",
    ]

    private mutating func number(_ depth: Int) -> NSExpression {
        if depth > 0 {
            switch random.below(17) {
            case 13: if let function = collectionFunction() { return function }
            case 14:
                // One side is nil, and the other a number.
                return NSExpression(
                    forConditional: predicate(0),
                    trueExpression: NSExpression(forConstantValue: nil),
                    falseExpression: number(0)
                )
            case 0, 1, 2:
                return NSExpression(
                    forFunction: random.pick(Self.binary),
                    arguments: [number(depth - 1), number(depth - 1)]
                )
            case 3: return NSExpression(forFunction: random.pick(Self.unary), arguments: [number(depth - 1)])
            case 4, 5:
                if let collection = collection() { return path(collection.scope, collection.keys + ".@count") }
            case 6, 7: if let aggregate = aggregate() { return aggregate }
            case 8:
                if let filtered = subquery(depth - 1) { return KeyPathFunction.make(filtered.expression, "@count") }
            case 9:
                return NSExpression(forFunction: "length:", arguments: [value(random.chance(80) ? .string : .data, 0)])
            case 10:
                let function = random.pick(["sum:", "count:", "max:", "min:", "average:", "median:", "stddev:"])
                let operands = [number(0), number(0), number(0)]
                return NSExpression(forFunction: function, arguments: [NSExpression(forAggregate: operands)])
            case 11:
                let operand = value(random.pick([.date, .date, .string, .number]), 0)
                return cast(operand, random.pick(["NSNumber", "NSDecimalNumber"]))
            case 12: return NSExpression(forFunction: "from:subtract:", arguments: [value(.date, 0), value(.date, 0)])
            default: break
            }
        }
        let scope = scope()
        guard let attribute = attributePath(from: scope.entity, where: { Family($0) == .number }) else {
            return constant(.number)
        }
        return path(scope.name, attribute.keys)
    }

    /// A function of a whole collection, in its written form.
    private mutating func collectionFunction() -> NSExpression? {
        guard let collection = collection() else { return nil }
        if random.chance(30) {
            let size = NSExpression(forConstantValue: IndexSymbol.size)
            return NSExpression(forFunction: "objectFrom:withIndex:", arguments: [collection.expression, size])
        }
        if random.chance(40) { return NSExpression(forFunction: "count:", arguments: [collection.expression]) }
        let isFit = { (attribute: NSAttributeDescription) in Family(attribute) == .number && attribute.type != .decimal
        }
        guard let attribute = attributePath(from: collection.entity, where: isFit) else { return nil }
        let members = path(collection.scope, collection.keys + "." + attribute.keys)
        return NSExpression(forFunction: random.pick(["sum:", "min:", "max:", "average:"]), arguments: [members])
    }

    private mutating func aggregate() -> NSExpression? {
        guard let collection = collection() else { return nil }
        let operation = random.pick(["@sum", "@avg", "@min", "@max"])
        let isSum = operation == "@sum" || operation == "@avg"
        // The sum of decimals depends on their order, which is undefined.
        let isFit = { (attribute: NSAttributeDescription) in
            Family(attribute) == .number && !(isSum && attribute.type == .decimal)
        }
        guard let attribute = attributePath(from: collection.entity, where: isFit) else { return nil }
        if random.chance(30), let filtered = subquery(0) {
            guard let attribute = attributePath(from: filtered.entity, where: isFit) else { return nil }
            return KeyPathFunction.make(filtered.expression, "\(operation).\(attribute.keys)")
        }
        return path(collection.scope, "\(collection.keys).\(operation).\(attribute.keys)")
    }
}
