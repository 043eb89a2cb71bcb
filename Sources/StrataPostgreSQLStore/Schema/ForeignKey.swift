import StrataRows
import StrataSQL

/// A foreign key: the server keeps a column from leading to a row that is gone, whoever writes.
///
/// Only columns have one that no save, batch or migration ever leaves behind like that. A relationship without an inverse, or whose inverse
/// has the delete rule no-action, may lead to an object that its own context has deleted.
struct ForeignKey {
    let name: SQLName
    let table: SQLName
    let column: SQLName
    /// The table of the rows that the column leads to.
    let target: SQLName
    /// The entity and the relationship that the column is of, as messages name them.
    let entity: String
    let relationship: String

    /// What the names of all of them begin with, so that they are told from those of others.
    static let prefix = "strata_fk_"

    /// The foreign keys for a model, in the order of its tables.
    static func all(_ mapping: SQLMapping) -> [ForeignKey] {
        var names = UniqueNames(naming: mapping.dialect.naming.name)
        var keys: [ForeignKey] = []
        func add(_ table: SQLName, _ column: SQLName, _ target: SQLName, _ relationship: Relationship) {
            keys.append(
                ForeignKey(
                    name: names.name(PostgreSQLName.limited("\(prefix)\(table.raw)_\(column.raw)")),
                    table: table,
                    column: column,
                    target: target,
                    entity: relationship.entity.name,
                    relationship: relationship.name
                )
            )
        }
        for entity in mapping.entities {
            for slot in entity.layout.ownSlots {
                guard let relationship = slot.relationship, relationship.isTold,
                    let column = entity.columns[slot.index].name,
                    let target = mapping.entity(modelNumber: slot.destinationNumber)
                else { continue }
                add(entity.table, column, target.table, relationship)
            }
            for slot in entity.layout.ownToMany {
                switch entity.toMany[slot.index] {
                case .join(let side) where slot.relationship.isTold:
                    add(side.table, side.member, side.memberTable, slot.relationship)
                    if side.isSymmetric { add(side.table, side.owner, entity.table, slot.relationship) }
                case .key(let key) where key.isWithoutInverse:
                    // The members' rows have the key of their owner, and who deletes that clears it, whatever the delete rule.
                    add(key.table, key.column, entity.table, slot.relationship)
                default: break
                }
            }
        }
        return keys
    }

    /// The statement that makes it.
    ///
    /// It is looked at when a transaction commits: a save may write rows in any order, and two new ones that lead to each other.
    func creation(_ naming: SQLNaming) -> String {
        "ALTER TABLE \(table) ADD CONSTRAINT \(name) FOREIGN KEY (\(column)) REFERENCES \(target) (\(naming.key)) DEFERRABLE INITIALLY DEFERRED"
    }

    /// The query that counts the rows which it would not allow.
    func violations(_ naming: SQLNaming) -> String {
        """
        SELECT pg_catalog.count(*) FROM \(table) AS t WHERE t.\(column) IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM \(target) AS d WHERE d.\(naming.key) = t.\(column))
        """
    }
}

extension Relationship {
    /// Whether each deletion of a destination takes it out of the relationship.
    ///
    /// A batch deletion does not look at transient relationships.
    fileprivate var isTold: Bool { !mayDangle && inverse?.isTransient == false }
}
