import Foundation

/// Names the tables of many-to-many relationships and their columns.
struct JoinNamer {
    /// A many-to-many relationship with the names of its table.
    struct Join {
        /// The relationship that gives the table its name, and its inverse.
        let owning: NSRelationshipDescription
        let inverse: NSRelationshipDescription
        let table: SQLName
        /// The keys of the owning side's objects.
        let first: SQLName
        /// The keys of the other side's objects.
        let second: SQLName
        let firstOrder: SQLName?
        let secondOrder: SQLName?
        var isSymmetric: Bool { owning === inverse }
    }

    private let members: [NSEntityDescription]
    private let storeNumbers: [Int]
    private let catalog: SQLCatalog?

    init(members: [NSEntityDescription], storeNumbers: [Int], catalog: SQLCatalog?) {
        self.members = members
        self.storeNumbers = storeNumbers
        self.catalog = catalog
    }

    /// All joins, in the order of the owning entities and their relationships.
    func joins() -> [Join] {
        var pairs: [(owning: NSRelationshipDescription, inverse: NSRelationshipDescription)] = []
        var seen: Set<ObjectIdentifier> = []
        for entity in members {
            for slot in entity.layout.toMany where slot.relationship.entity === entity && !slot.isTransient {
                let relationship = slot.relationship
                guard let inverse = relationship.inverseRelationship, inverse.isToMany, !inverse.isTransient,
                    number(relationship.destinationEntity) > 0, number(inverse.entity) > 0,
                    seen.insert(ObjectIdentifier(relationship)).inserted
                else { continue }
                seen.insert(ObjectIdentifier(inverse))
                pairs.append(owns(relationship, inverse) ? (relationship, inverse) : (inverse, relationship))
            }
        }
        let columns = columnNames(pairs.flatMap { $0.owning === $0.inverse ? [$0.owning] : [$0.owning, $0.inverse] })
        return pairs.map { named($0.owning, $0.inverse, columns) }
    }

    private func number(_ entity: NSEntityDescription?) -> Int { entity.map { storeNumbers[$0.entityNumber] } ?? 0 }

    /// Whether the first of the two gives the table its name: that of the entity with the lower number.
    ///
    /// Within one entity Apple's choice cannot be told from the model; in nine files out of ten it is the later name. A
    /// file that has a table by the other name decides.
    private func owns(_ one: NSRelationshipDescription, _ other: NSRelationshipDescription) -> Bool {
        let (left, right) = (number(one.entity), number(other.entity))
        guard left == right else { return left < right }
        if let catalog {
            let hasOne = catalog.hasTable(tableName(one))
            let hasOther = catalog.hasTable(tableName(other))
            if hasOne != hasOther { return hasOne }
        }
        return one.name >= other.name
    }

    private func tableName(_ relationship: NSRelationshipDescription) -> String {
        "Z_\(number(relationship.entity))" + relationship.name.uppercased()
    }

    /// The column for what each relationship points at, without its `Z_`.
    ///
    /// The names are unique among all join tables of one destination; they are handed out by the names of the entities at
    /// the other end.
    private func columnNames(_ relationships: [NSRelationshipDescription]) -> [ObjectIdentifier: String] {
        let sorted = relationships.sorted { left, right in
            let (a, b) = (left.entity.name ?? "", right.entity.name ?? "")
            return a == b ? left.name < right.name : a.lowercased() < b.lowercased()
        }
        var taken: [Int: UniqueNames] = [:]
        var names: [ObjectIdentifier: String] = [:]
        for relationship in sorted {
            let destination = number(relationship.destinationEntity)
            let base = "\(destination)" + relationship.name.uppercased()
            names[ObjectIdentifier(relationship)] = base + taken[destination, default: UniqueNames()].suffix(for: base)
        }
        return names
    }

    private func named(
        _ owning: NSRelationshipDescription,
        _ inverse: NSRelationshipDescription,
        _ columns: [ObjectIdentifier: String]
    ) -> Join {
        let table = tableName(owning)
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

    /// The column of that name, or else the one in the file that differs only in the number at its end.
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
