import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// Translates the predicate and the order of a fetch to SQL.
///
/// ## Truth
/// SQL has a third truth value. The text of a condition is TRUE exactly for the rows that fulfil it, and for the others
/// either FALSE or NULL: `AND`, `OR`, `EXISTS`, `CASE WHEN` and `WHERE` itself make no difference between these two.
/// Only `NOT` would. So a negation is written `(…) IS NOT TRUE`, which is never NULL, or as the opposite comparison
/// with the columns that may be NULL. Comparisons stay so simple that an index can be used.
///
/// ## Values
/// A value in SQL is of the storage class that the in-memory evaluator's value has: whole numbers INTEGER, other numbers
/// and dates REAL. Columns of dates and decimals may hold either, which is the same in a comparison, but not in a division,
/// so they are cast where something is computed from them. Decimals are also cast where they are compared with what may
/// be 2⁵³ or more: a column can hold a larger whole number with all of its digits, and decimals compare as doubles.
///
/// ## Relationships
/// To-one relationships are LEFT JOINs, shared by all expressions with the same path. To-many relationships are
/// sub-selects, in which the members' table is named after the predicate's variable. So no row ever comes twice, and
/// DISTINCT is not needed.
package struct QueryCompiler {
    package let mapping: SQLMapping
    private let storeNumber: Int

    /// The text that is being written.
    package private(set) var text = ""
    package private(set) var bindings: [SQLBinding] = []
    /// The scopes by variable; `nil` for variables whose collection is not being written.
    private var scopes: [QueryScope?]
    private var lastAlias = 0
    /// Whether the predicate is nested so deeply that it has to be written in a form for SQLite's parser.
    package private(set) var isDeep = false

    /// - Parameters:
    ///   - mapping: The tables of the store.
    ///   - storeNumber: The number by which predicates distinguish the store's objects from those of other stores.
    ///   - entity: The entity of variable 0, whose table is `t0`.
    ///   - variableCount: The number of variables in the tree.
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
    ///   - mapping: The tables of the store.
    /// - Returns: The texts and the values.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    package static func compile(_ plan: FetchPlan, for entity: EntityMapping, in mapping: SQLMapping) throws
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
            // The index that the database happens to choose must not decide which rows are within limit and offset.
            query.order = "t0.\(mapping.dialect.naming.key)"
        }
        query.joins = compiler.joins
        query.bindings = compiler.bindings
        return query
    }

    /// Writes a whole predicate.
    ///
    /// The resolver has checked that SQLite's parser can read it, if necessary with the deepest operands first.
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
    /// - Returns: The text of the parameter.
    package mutating func parameter(for binding: SQLBinding) -> String {
        bindings.append(binding)
        return mapping.dialect.parameter(bindings.count)
    }

    package mutating func takeText() -> String {
        var taken = ""
        swap(&taken, &text)
        return taken
    }

    /// Returns the text that `body` writes.
    ///
    /// Its bindings are added to the others, so the text has to be used at once.
    package mutating func piece(_ body: (inout QueryCompiler) throws -> Void) rethrows -> String {
        var around = takeText()
        // An error ends the whole compilation, so nothing has to be restored after one.
        try body(&self)
        swap(&around, &text)
        return around
    }

    // MARK: - Order

    /// Writes the text after `ORDER BY`.
    ///
    /// NULL comes first, as in ``ResolvedSort``. Equal rows come in the order of insertion.
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

    /// The place of the object at the end of a path.
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

    /// Lets a variable mean the rows of a scope while `body` writes.
    ///
    /// - Returns: The scope with the tables that `body` needed.
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

    /// Finds the object at the end of a path, and joins the tables along it.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - needsRow: Whether columns of its row are needed, and not only the key.
    /// - Returns: The place of the object; `nil` if the store has no such objects.
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

    /// The primary key of an identity in this store; `nil` if it is of another store or hierarchy.
    package func key(of value: PredicateValue, root: Int?) -> Int64? {
        guard case .reference(let identity) = value, identity.store == storeNumber, identity.entity == root,
            identity.key > 0
        else { return nil }
        return identity.key
    }

    // MARK: - Entities

    /// The value in the form that a column of this store holds.
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
