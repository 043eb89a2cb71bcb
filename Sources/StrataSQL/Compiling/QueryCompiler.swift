import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// Turns the predicate and the order of a fetch into SQL.
///
/// ## Truth
/// SQL has a third truth value. The text of a condition is TRUE exactly for the rows that fulfil it, and for the others
/// either FALSE or NULL: `AND`, `OR`, `EXISTS`, `CASE WHEN` and `WHERE` itself make no difference between these two. Only
/// `NOT` would, so a negation is written `(…) IS NOT TRUE`, which is never NULL, or as the opposite comparison with the columns that
/// may be NULL. Comparisons stay as plain as an index wants them.
///
/// ## Values
/// A value in SQL is of the storage class that the in-memory evaluator's value has: whole numbers INTEGER, other numbers
/// and dates REAL. Columns of dates and decimals may hold either, which is the same in a comparison, but not in a division,
/// so they are cast where something is computed from them. Decimals are also cast where they are compared with what may
/// be 2⁵³ or more: a column can hold a larger whole number with all of its digits, and decimals compare as doubles.
///
/// ## Relationships
/// To-one relationships are LEFT JOINs, shared by all that goes the same way. To-many relationships are sub-selects, in
/// which the members' table is named after the predicate's variable. So no row ever comes twice, and nothing has to be
/// made distinct.
package struct QueryCompiler {
    package let mapping: SQLMapping
    private let storeNumber: Int

    /// The text that is being written.
    package private(set) var text = ""
    package private(set) var bindings: [SQLBinding] = []
    /// By variable; `nil` for those whose collection is not being written.
    private var scopes: [QueryScope?]
    private var lastAlias = 0
    /// Whether the predicate is nested so deep that SQLite's parser has to be spared.
    package private(set) var isDeep = false

    /// - Parameters:
    ///   - mapping: Where the store keeps its rows.
    ///   - storeNumber: The number by which predicates tell the store's objects from others.
    ///   - entity: The entity of variable 0, whose table is `t0`.
    ///   - variableCount: How many variables the tree has.
    package init(_ mapping: SQLMapping, storeNumber: Int, entity: EntityMapping, variableCount: Int) {
        self.mapping = mapping
        self.storeNumber = storeNumber
        scopes = Array(repeating: nil, count: max(variableCount, 1))
        scopes[0] = QueryScope(mapping: entity, alias: "t0", naming: mapping.dialect.naming)
    }

    /// Compiles the predicate and the order of a plan.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - entity: The mapping of the plan's entity.
    ///   - mapping: Where the store keeps its rows.
    /// - Returns: The texts and the values.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) for what SQL cannot say.
    package static func compile(_ plan: FetchPlan, _ entity: EntityMapping, _ mapping: SQLMapping) throws
        -> CompiledQuery
    {
        var query = CompiledQuery()
        let isWindowed = plan.limit > 0 || plan.offset > 0
        guard plan.predicate != nil || plan.sort != nil else {
            if isWindowed { query.order = "t0.\(mapping.dialect.naming.key)" }
            return query
        }
        var compiler = QueryCompiler(
            mapping,
            storeNumber: plan.storeNumber,
            entity: entity,
            variableCount: max(plan.predicate?.variableCount ?? 1, plan.sort?.variableCount ?? 1)
        )
        if let predicate = plan.predicate {
            try compiler.writeWhole(predicate.condition)
            query.condition = compiler.takeText()
        }
        if let sort = plan.sort {
            try compiler.write(sort)
            query.order = compiler.takeText()
        } else if isWindowed {
            // Which rows a window shows must not depend on the index that the database happens to choose.
            query.order = "t0.\(mapping.dialect.naming.key)"
        }
        query.joins = compiler.joins
        query.bindings = compiler.bindings
        return query
    }

    /// Writes all of a predicate.
    ///
    /// The resolver has checked that SQLite's parser can read it, if need be with the deepest operands first.
    package mutating func writeWhole(_ condition: ResolvedCondition) throws {
        isDeep = condition.nesting(deepestFirst: false) > Nesting.limit
        try write(condition)
    }

    /// The joins on the fetched entity's table.
    package var joins: String { scopes[0]?.joins ?? "" }

    // MARK: - Text

    package var forms: SQLForms { mapping.dialect.forms }
    package var naming: SQLNaming { mapping.dialect.naming }

    package mutating func write(_ piece: String) {
        text += piece
    }

    /// Writes a truth value as a condition.
    package mutating func write(_ truth: Bool) {
        text += forms.truth(truth)
    }

    package mutating func write(_ name: SQLName) {
        text += name.description
    }

    /// Writes a parameter and remembers its value.
    package mutating func bind(_ binding: SQLBinding) {
        text += parameter(for: binding)
    }

    /// Remembers the value of a parameter.
    ///
    /// - Returns: How the parameter is written.
    package mutating func parameter(for binding: SQLBinding) -> String {
        bindings.append(binding)
        return mapping.dialect.parameter(bindings.count)
    }

    package mutating func takeText() -> String {
        var taken = ""
        swap(&taken, &text)
        return taken
    }

    /// What `body` writes, as a text of its own.
    ///
    /// Its bindings join the others, so it has to be used right away.
    package mutating func piece(_ body: (inout QueryCompiler) throws -> Void) rethrows -> String {
        var around = takeText()
        // Thrown errors end the whole compilation, so nothing has to be put back then.
        try body(&self)
        swap(&around, &text)
        return around
    }

    // MARK: - Order

    /// Writes what comes after `ORDER BY`.
    ///
    /// NULL comes first, as in ``ResolvedSort``. Among equals the order of insertion decides.
    package mutating func write(_ sort: ResolvedSort) throws {
        for term in sort.terms {
            try write(term)
            write(", ")
        }
        write("t0.\(naming.key)")
    }

    /// Writes one term of an order.
    package mutating func write(_ term: ResolvedSort.Term) throws {
        try write(term.expression, collation: mapping.dialect.sortCollation(term.comparison))
        write(forms.direction(term.ascending))
    }

    // MARK: - Variables and paths

    /// Where the object at the end of a path is found.
    package struct Place {
        package let mapping: EntityMapping
        package let alias: String
        /// The object's primary key, NULL if there is no object.
        package let key: String

        package init(mapping: EntityMapping, alias: String, key: String) {
            self.mapping = mapping
            self.alias = alias
            self.key = key
        }
    }

    /// Makes a variable stand for the rows of a scope while `body` writes.
    ///
    /// - Returns: The scope with what `body` needed of it.
    package mutating func withScope(
        _ scope: QueryScope,
        of variable: Int,
        _ body: (inout QueryCompiler) throws -> Void
    ) rethrows -> QueryScope {
        scopes[variable] = scope
        try body(&self)
        let used = scopes[variable] ?? scope
        scopes[variable] = nil
        return used
    }

    package mutating func newAlias(_ letter: String) -> String {
        lastAlias += 1
        return letter + String(lastAlias)
    }

    /// The object at the end of a path, for which the tables on the way are joined.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - needsRow: Whether columns of its row are needed, and not only the key.
    /// - Returns: Where the object is found; `nil` if the store has no such objects.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) for a variable outside of its collection.
    package mutating func place(of path: ResolvedPath, needsRow: Bool = true) throws -> Place? {
        guard scopes.indices.contains(path.variable), let scope = scopes[path.variable] else {
            throw Self.unsupported("A variable of the predicate is used outside of the collection that it belongs to.")
        }
        if needsRow || !path.steps.isEmpty { scopes[path.variable]?.needsRow = true }
        var place = Place(mapping: scope.mapping, alias: scope.alias, key: scope.key)
        for step in path.steps {
            guard let next = entity(step.destination) else { return nil }
            var number = lastAlias
            let newAlias = {
                number += 1
                return "t\(number)"
            }
            let joined: String?
            if step.isCast {
                joined = scopes[path.variable]?.cast(place.key, to: next, newAlias: newAlias)
            } else {
                guard let column = place.mapping.columns[step.slot].name else { return nil }
                joined = scopes[path.variable]?.join(next.table, from: place.alias, column, newAlias: newAlias)
            }
            lastAlias = number
            guard let joined else { return nil }
            place = Place(mapping: next, alias: joined, key: "\(joined).\(naming.key)")
        }
        return place
    }

    package func entity(_ schema: any PredicateSchema) -> EntityMapping? {
        (schema as? EntityLayout).flatMap(mapping.entity)
    }

    // MARK: - References

    /// The number of the root entity of the objects at the end of a path.
    package func rootNumber(of path: ResolvedPath) -> Int? {
        if let last = path.steps.last { return last.rootNumber }
        return scopes[path.variable]?.mapping.layout.rootNumber
    }

    /// The primary key that an identity has in this store, if it is of this store and of a hierarchy.
    package func key(of value: PredicateValue, root: Int?) -> Int64? {
        guard case .reference(let identity) = value, identity.store == storeNumber, identity.entity == root,
            identity.key > 0
        else { return nil }
        return identity.key
    }

    // MARK: - Entities

    /// The value as a column of this store holds it.
    package func binding(_ value: PredicateValue) -> SQLBinding {
        if case .uuid(let uuid) = value, forms.hasUUIDs { return .uuid(uuid) }
        guard case .entity(let number) = value else { return SQLBinding(value) }
        return mapping.entity(modelNumber: number).map { .integer(Int64($0.number)) } ?? .null
    }

    // MARK: - Errors

    package static func unsupported(_ text: String) -> CocoaError {
        CocoaError.described(.persistentStoreUnsupportedRequestType, userInfo: [NSLocalizedDescriptionKey: text])
    }
}
