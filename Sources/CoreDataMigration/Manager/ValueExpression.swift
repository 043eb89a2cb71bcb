import CoreDataEssentials
import StrataPredicates

/// The variables of a value expression in a migration.
struct ExpressionScope {
    let manager: NSMigrationManager
    let mapping: NSEntityMapping
    let policy: NSEntityMigrationPolicy
    var property: NSPropertyMapping?
    var source: NSManagedObject?
    var destination: NSManagedObject?

    static let variables: Set<String> = [
        NSMigrationManagerKey, NSMigrationSourceObjectKey, NSMigrationDestinationObjectKey,
        NSMigrationEntityMappingKey, NSMigrationPropertyMappingKey, NSMigrationEntityPolicyKey,
    ]

    fileprivate var dictionary: NSMutableDictionary {
        let variables = NSMutableDictionary()
        variables[NSMigrationManagerKey] = manager
        variables[NSMigrationSourceObjectKey] = source ?? NSNull()
        variables[NSMigrationDestinationObjectKey] = destination ?? NSNull()
        variables[NSMigrationEntityMappingKey] = mapping
        variables[NSMigrationPropertyMappingKey] = property ?? NSNull()
        variables[NSMigrationEntityPolicyKey] = policy
        return variables
    }
}

/// An expression of a mapping model, ready to be evaluated for many objects.
///
/// Constants and properties of the source object are read directly. The evaluator of expressions evaluates all other
/// expressions; it also calls functions of the manager and the policy.
struct ValueExpression {
    private enum Form {
        case constant(Any?)
        /// One property of the source object.
        case sourceProperty(String)
        case any
    }

    let expression: NSExpression
    private let form: Form
    /// The transformable attributes of the source object that the expression reads, elements by their paths.
    private let transformables: [String]

    /// - Parameters:
    ///   - expression: The expression.
    ///   - source: The source entity, whose properties are read directly.
    init(_ expression: NSExpression, source: NSEntityDescription?) {
        self.expression = expression
        if let key = Self.sourceKey(expression), source?.propertiesByName[key] != nil {
            form = .sourceProperty(key)
        } else if case .constant(let value) = expression.kind {
            form = .constant(value is NSNull ? nil : value)
        } else {
            form = .any
        }
        transformables = source.map { Self.transformables(in: expression, of: $0) } ?? []
    }

    /// The value of the expression.
    ///
    /// - Throws: `PredicateEvaluationError` if the expression cannot be evaluated, or reads a value that is there, but
    ///   cannot be decoded: computing with nil instead would lose it.
    func value(_ scope: ExpressionScope) throws -> Any? {
        for key in transformables where scope.source?.undecodableArchive(forKey: key) != nil {
            throw PredicateEvaluationError(
                "\"\(key)\" has a value that cannot be read, because its class or its value transformer is unknown here"
            )
        }
        return switch form {
        case .constant(let value): value
        case .sourceProperty(let key): scope.source?.value(forKey: key)
        case .any: nullToNil(try expression.valueOrThrow(with: scope.source, context: scope.dictionary))
        }
    }

    /// The archive that a plain copy of a transformable attribute moves unchanged, because it cannot be decoded.
    func undecodableCopy(_ scope: ExpressionScope) -> Data? {
        guard case .sourceProperty(let key) = form, transformables == [key] else { return nil }
        return scope.source?.undecodableArchive(forKey: key)
    }

    // MARK: - The form of the expression

    private static func transformables(in expression: NSExpression, of source: NSEntityDescription) -> [String] {
        let name = sourcePath(expression)?.split(separator: ".").first.map(String.init)
        let own = name.flatMap { source.attributesByName[$0] }.map { transformables(in: $0, path: $0.name) } ?? []
        return own + parts(of: expression).flatMap { transformables(in: $0, of: source) }
    }

    private static func transformables(in attribute: NSAttributeDescription, path: String) -> [String] {
        guard let composite = attribute as? NSCompositeAttributeDescription else {
            return attribute.attributeType == .transformableAttributeType && !attribute.isTransient ? [path] : []
        }
        return composite.elements.flatMap { transformables(in: $0, path: "\(path).\($0.name)") }
    }

    /// The name of the source object's property, if the expression is one.
    private static func sourceKey(_ expression: NSExpression) -> String? {
        guard let path = sourcePath(expression), !path.contains("."), !path.hasPrefix("@") else { return nil }
        return path
    }

    /// The key path on the source object, if the expression is one.
    static func sourcePath(_ expression: NSExpression) -> String? {
        switch expression.kind {
        case .keyPath(let path): return path
        case .function("valueForKey:", let target?, let arguments),
            .function(KeyPathFunction.name, let target?, let arguments):
            guard case .variable(NSMigrationSourceObjectKey) = target.kind else { return nil }
            return KeyPathFunction.path(of: arguments)
        default: return nil
        }
    }

    /// The parts of an expression, except those inside of predicates.
    static func parts(of expression: NSExpression) -> [NSExpression] {
        if let fetch = expression as? NSFetchRequestExpression {
            return [fetch.requestExpression, fetch.contextExpression]
        }
        return switch expression.kind {
        case .function(_, let target, let arguments): (target.map { [$0] } ?? []) + arguments
        case .setOperation(_, let left, let right): [left, right]
        case .aggregate(let members): members
        case .block(_, let arguments): arguments
        case .conditional(_, let first, let second): [first, second]
        case .subquery(let source, _, _): [source]
        case .constant, .evaluatedObject, .variable, .keyPath, .anyKey, .custom: []
        }
    }

    // MARK: - Fetches

    /// The request of a fetch expression.
    static func request(
        of fetch: NSFetchRequestExpression,
        _ scope: ExpressionScope
    ) throws -> NSFetchRequest<NSFetchRequestResult> {
        let value = try fetch.requestExpression.valueOrThrow(with: scope.source, context: scope.dictionary)
        guard let given = value as? any AnyFetchRequest else {
            throw PredicateEvaluationError("\(fetch.requestExpression) gives no fetch request")
        }
        let request = NSFetchRequest<NSFetchRequestResult>(specification: given.specification)
        request.affectedStores = given.affectedStores
        return request
    }

    // MARK: - Checks in advance

    /// Checks that all functions and variables are known.
    ///
    /// - Throws: `entityMigrationPolicy` (134170) for a name that neither the manager nor the policy has.
    func check(_ scope: ExpressionScope) throws { try Self.check(expression, scope) }

    private static func check(_ expression: NSExpression, _ scope: ExpressionScope) throws {
        switch expression.kind {
        case .variable(let name) where !ExpressionScope.variables.contains(name):
            throw MigrationFailure.error(
                .entityMigrationPolicy,
                "Mapping \(scope.mapping.effectiveName): a migration has no variable $\(name).",
                mapping: scope.mapping,
                property: scope.property?.name
            )
        case .function(let name, let target?, _) where name != KeyPathFunction.name:
            let isKnown =
                switch target.kind {
                case .variable(NSMigrationManagerKey): scope.manager.function(named: name) != nil
                case .variable(NSMigrationEntityPolicyKey): scope.policy.function(named: name) != nil
                default: true
                }
            guard isKnown || name == "valueForKey:" || NSExpression.functionNames().contains(name) else {
                throw unknownFunction(name, mapping: scope.mapping, property: scope.property)
            }
        default: break
        }
        for part in parts(of: expression) { try check(part, scope) }
    }

    private static func unknownFunction(
        _ name: String,
        mapping: NSEntityMapping,
        property: NSPropertyMapping?
    ) -> CocoaError {
        let policy = mapping.entityMigrationPolicyClassName ?? "NSEntityMigrationPolicy"
        return MigrationFailure.error(
            .entityMigrationPolicy,
            """
            Mapping \(mapping.effectiveName) calls "\(name)"\(property?.name.map { " for \($0)" } ?? ""), which neither is a \
            function of the migration manager nor one of \(policy). Override function(named:) in the policy and give it there.
            """,
            mapping: mapping,
            property: property?.name
        )
    }
}
