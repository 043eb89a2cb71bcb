import CoreDataEssentials
import CoreDataModelFiles
import StrataArchives
import StrataPredicates

/// Turns the archived expressions of mapping models into expressions.
///
/// Only a fixed list of classes is allowed; an archive can make no other objects, and its depth and its length are
/// limited.
struct ArchivedExpression {
    private let archive: KeyedArchive
    private let values: ArchivedValues
    private let budget: ReadingBudget

    private static let maximumDepth = 64

    init(archive: KeyedArchive, values: ArchivedValues, budget: ReadingBudget) {
        self.archive = archive
        self.values = values
        self.budget = budget
    }

    /// The expression in a separate archive.
    ///
    /// - Throws: The problem of the archive.
    static func expression(archivedIn data: Data) throws(ModelError) -> NSExpression {
        let archive: KeyedArchive
        do {
            archive = try KeyedArchive(data)
        } catch {
            throw ModelError(.malformed, "it is no archive")
        }
        return try ArchivedExpression(archive: archive, values: ArchivedValues(archive), budget: ReadingBudget())
            .expression(archive.root)
    }

    /// The expression with a number.
    ///
    /// - Throws: The problem of the expression.
    func expression(_ number: Int, depth: Int = 0) throws(ModelError) -> NSExpression {
        guard depth < Self.maximumDepth else { throw ModelError(.malformed, "it is nested too deeply") }
        try budget.spend(1)
        guard let object = archive.object(number), let name = object.classNames.first else {
            throw ModelError(.malformed, "a part of it is missing")
        }
        switch name {
        case "NSSelfExpression": return NSExpression.expressionForEvaluatedObject()
        case "NSVariableExpression": return NSExpression(forVariable: try text(object, "NSVariable"))
        case "NSConstantValueExpression": return NSExpression(forConstantValue: try constant(object))
        case "NSKeyPathSpecifierExpression": return NSExpression(forKeyPath: try text(object, "NSKeyPath"))
        case "NSKeyPathExpression": return try keyPath(object, depth)
        case "NSFunctionExpression": return try function(object, depth)
        case "NSFetchRequestExpression": return try fetch(object, depth)
        case "NSAggregateExpression":
            return NSExpression(forAggregate: try parts(of: object, field: "NSCollection", depth: depth))
        case "NSSetExpression": return try set(object, depth)
        case "NSTernaryExpression": return try conditional(object, depth)
        case "NSSubqueryExpression": return try subquery(object, depth)
        default: throw ModelError(.malformed, "it has an object of class \(name), which expressions do not have")
        }
    }

    // MARK: - Kinds

    private func constant(_ object: KeyedArchive.Object) throws(ModelError) -> Any? {
        guard let number = object.reference("NSConstantValue") else {
            throw ModelError(.malformed, "a constant has no value")
        }
        if number == 0 { return nil }
        guard let value = values.value(number) else {
            throw ModelError(.malformed, "a constant is of a class that is not read")
        }
        return value
    }

    private func keyPath(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        guard let argument = object.object("NSArguments")?.references("NS.objects")?.first,
            let specifier = archive.object(argument),
            let path = specifier.string("NSKeyPath") ?? specifier.string("NSConstantValue"), !path.isEmpty
        else { throw ModelError(.malformed, "a key path has no text") }
        let target = try part(of: object, field: "NSOperand", depth: depth)
        if case .evaluatedObject = target.kind { return NSExpression(forKeyPath: path) }
        return KeyPathFunction.make(target, path)
    }

    private func function(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        let name = try text(object, "NSSelectorName")
        let arguments = try parts(of: object, field: "NSArguments", depth: depth)
        if object.object("NSOperand")?.string("NSConstantValueClassName") == "_NSPredicateUtilities" {
            guard let function = PredefinedFunction(name: name) else {
                throw ModelError(.malformed, "it calls \(name), which is no predefined function")
            }
            if let problem = function.arityProblem(count: arguments.count) { throw ModelError(.malformed, problem) }
            return NSExpression(kind: .function(name: function.rawValue, target: nil, arguments: arguments))
        }
        return NSExpression(
            forFunction: try part(of: object, field: "NSOperand", depth: depth),
            selectorName: name,
            arguments: arguments
        )
    }

    private func fetch(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        NSFetchRequestExpression.expression(
            forFetch: try part(of: object, field: "NSFRExpression", depth: depth),
            context: try part(of: object, field: "NSMOCExpression", depth: depth),
            countOnly: object.flag("NSCountOnlyFlag")
        )
    }

    private func set(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        let left = try part(of: object, field: "NSLeftExpression", depth: depth)
        let right = try part(of: object, field: "NSRightExpression", depth: depth)
        switch object.integer("NSExpressionType") {
        case 5: return NSExpression(forUnionSet: left, with: right)
        case 6: return NSExpression(forIntersectSet: left, with: right)
        case 7: return NSExpression(forMinusSet: left, with: right)
        default: throw ModelError(.malformed, "a set operation is of an unknown type")
        }
    }

    private func conditional(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        NSExpression(
            forConditional: try predicate(object),
            trueExpression: try part(of: object, field: "NSTrueExpression", depth: depth),
            falseExpression: try part(of: object, field: "NSFalseExpression", depth: depth)
        )
    }

    private func subquery(_ object: KeyedArchive.Object, _ depth: Int) throws(ModelError) -> NSExpression {
        let variable = object.string("NSVariable") ?? object.object("NSVariableExpression")?.string("NSVariable")
        guard let variable, !variable.isEmpty else { throw ModelError(.malformed, "a subquery has no variable") }
        let source = object.reference("NSCollection") != nil ? "NSCollection" : "NSOperand"
        return NSExpression(
            forSubquery: try part(of: object, field: source, depth: depth),
            usingIteratorVariable: variable,
            predicate: try predicate(object)
        )
    }

    private func predicate(_ object: KeyedArchive.Object) throws(ModelError) -> NSPredicate {
        guard let number = object.reference("NSPredicate"), number != 0 else {
            throw ModelError(.malformed, "a predicate is missing")
        }
        var reader = ArchivedPredicate(archive: archive, values: values, budget: budget)
        do {
            return try reader.predicate(number)
        } catch {
            throw ModelError(.malformed, "a predicate in it cannot be read")
        }
    }

    // MARK: - Parts

    private func text(_ object: KeyedArchive.Object, _ field: String) throws(ModelError) -> String {
        guard let text = object.string(field), !text.isEmpty else {
            throw ModelError(.malformed, "a part of it has no \(field)")
        }
        return text
    }

    private func part(of object: KeyedArchive.Object, field: String, depth: Int) throws(ModelError) -> NSExpression {
        guard let number = object.reference(field) else { throw ModelError(.malformed, "a part of it has no \(field)") }
        return try expression(number, depth: depth + 1)
    }

    private func parts(
        of object: KeyedArchive.Object,
        field: String,
        depth: Int
    ) throws(ModelError) -> [NSExpression] {
        guard let list = object.object(field) else { return [] }
        guard let numbers = list.references("NS.objects") else {
            throw ModelError(.malformed, "a part of it has no list \(field)")
        }
        var parts: [NSExpression] = []
        for number in numbers { parts.append(try expression(number, depth: depth + 1)) }
        return parts
    }
}
