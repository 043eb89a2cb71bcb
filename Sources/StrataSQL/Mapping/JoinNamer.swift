import Foundation
import StrataRows

/// Names the tables of many-to-many relationships and their columns.
package struct JoinNamer {
    /// A many-to-many relationship with the names of its table.
    package struct Join {
        /// The relationship that gives the table its name, and its inverse.
        package let owning: Relationship
        package let inverse: Relationship
        package let table: SQLName
        /// The column of the keys of the owning side's objects.
        package let first: SQLName
        /// The column of the keys of the other side's objects.
        package let second: SQLName
        package let firstOrder: SQLName?
        package let secondOrder: SQLName?

        package init(
            owning: Relationship,
            inverse: Relationship,
            table: SQLName,
            first: SQLName,
            second: SQLName,
            firstOrder: SQLName?,
            secondOrder: SQLName?
        ) {
            self.owning = owning
            self.inverse = inverse
            self.table = table
            self.first = first
            self.second = second
            self.firstOrder = firstOrder
            self.secondOrder = secondOrder
        }

        package var isSymmetric: Bool { owning === inverse }
    }

    private let members: [EntityLayout]
    private let storeNumbers: [Int]
    private let catalog: SQLCatalog?
    private let naming: SQLNaming
    private let hints: SQLHints?

    package init(
        members: [EntityLayout],
        storeNumbers: [Int],
        catalog: SQLCatalog?,
        naming: SQLNaming = .apple,
        hints: SQLHints? = nil
    ) {
        self.members = members
        self.storeNumbers = storeNumbers
        self.catalog = catalog
        self.naming = naming
        self.hints = hints
    }

    /// All joins, in the order of the owning entities and their relationships.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if the model gives a table a name that is not possible.
    package func joins() throws -> [Join] {
        var pairs: [(owning: Relationship, inverse: Relationship)] = []
        var seen: Set<ObjectIdentifier> = []
        for entity in members {
            for slot in entity.toMany where slot.relationship.entity === entity && !slot.isTransient {
                let relationship = slot.relationship
                guard let inverse = relationship.inverse, inverse.isToMany, !inverse.isTransient,
                    number(relationship.destination) > 0, number(inverse.entity) > 0,
                    seen.insert(ObjectIdentifier(relationship)).inserted
                else { continue }
                seen.insert(ObjectIdentifier(inverse))
                pairs.append(owns(relationship, inverse) ? (relationship, inverse) : (inverse, relationship))
            }
        }
        let columns = columnNames(pairs.flatMap { $0.owning === $0.inverse ? [$0.owning] : [$0.owning, $0.inverse] })
        return try pairs.map { try named(for: $0.owning, inverse: $0.inverse, columns: columns) }
    }

    /// The name that the model gives to the table of a relationship, on either side of it.
    private func given(_ owning: Relationship, _ inverse: Relationship) throws -> String? {
        for relationship in [owning, inverse] {
            let (entity, name) = (relationship.entity, relationship.name)
            let found = try hints?.name(for: \.table, in: entity.propertyInfo[name], of: "\(entity.name).\(name)")
            if let found { return found }
        }
        return nil
    }

    private func number(_ entity: EntityLayout?) -> Int { entity.map { storeNumbers[$0.number] } ?? 0 }

    /// Whether the first of the two gives the table its name: that of the entity with the lower number.
    ///
    /// Within one entity the model does not show Apple's choice; in nine files out of ten it is the later name. If a
    /// file has a table with the other name, the file decides.
    private func owns(_ one: Relationship, _ other: Relationship) -> Bool {
        let (left, right) = (number(one.entity), number(other.entity))
        guard left == right else { return left < right }
        if let catalog {
            let hasOne = catalog.hasTable(tableName(one))
            let hasOther = catalog.hasTable(tableName(other))
            if hasOne != hasOther { return hasOne }
        }
        return one.name >= other.name
    }

    private func tableName(_ relationship: Relationship) -> String {
        naming.joinTable(relationship, number(relationship.entity))
    }

    /// The column for the destination of each relationship, without its `Z_`.
    ///
    /// The names are unique among all join tables of one destination. They are given in the order of the names of the
    /// entities at the other end.
    private func columnNames(_ relationships: [Relationship]) -> [ObjectIdentifier: String] {
        let sorted = relationships.sorted { left, right in
            let (a, b) = (left.entity.name, right.entity.name)
            return a == b ? left.name < right.name : a.lowercased() < b.lowercased()
        }
        var taken: [Int: UniqueNames] = [:]
        var names: [ObjectIdentifier: String] = [:]
        for relationship in sorted {
            let destination = number(relationship.destination)
            let base = "\(destination)" + relationship.name.uppercased()
            names[ObjectIdentifier(relationship)] = base + taken[destination, default: UniqueNames()].suffix(for: base)
        }
        return names
    }

    private func named(
        for owning: Relationship,
        inverse: Relationship,
        columns: [ObjectIdentifier: String]
    ) throws -> Join {
        let table = try given(owning, inverse) ?? tableName(owning)
        if let columns = naming.joinColumns?(owning, inverse) {
            let isSymmetric = owning === inverse
            return Join(
                owning: owning,
                inverse: inverse,
                table: naming.name(table),
                first: naming.name(columns.first),
                second: naming.name(columns.second),
                firstOrder: inverse.isOrdered && !isSymmetric ? naming.name(columns.firstOrder) : nil,
                secondOrder: owning.isOrdered ? naming.name(columns.secondOrder) : nil
            )
        }
        let actual = catalog?.columns(of: table) ?? []
        let second = settled(columns[ObjectIdentifier(owning)] ?? "", actual)
        let isSymmetric = owning === inverse
        let first = isSymmetric ? "REFLEXIVE" : settled(columns[ObjectIdentifier(inverse)] ?? "", actual)
        return Join(
            owning: owning,
            inverse: inverse,
            table: SQLName(table),
            first: SQLName(isSymmetric ? first : "Z_" + first),
            second: SQLName("Z_" + second),
            firstOrder: inverse.isOrdered && !isSymmetric ? SQLName("Z_FOK_" + first) : nil,
            secondOrder: owning.isOrdered ? SQLName("Z_FOK_" + second) : nil
        )
    }

    /// The column of that name, or otherwise the one in the file that differs only in the number at its end.
    private func settled(_ name: String, _ actual: [String]) -> String {
        let wanted = "Z_" + name
        let known = actual.map { $0.uppercased() }
        guard !known.isEmpty, !known.contains(wanted) else { return name }
        let stem = String(wanted.reversed().drop { $0.isNumber }.reversed())
        let candidates = known.filter { column in
            column.hasPrefix(stem) && column.dropFirst(stem.count).allSatisfy(\.isNumber)
        }
        return candidates.count == 1 ? String(candidates[0].dropFirst(2)) : name
    }
}
