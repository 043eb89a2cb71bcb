import StrataRows
import StrataSQL

/// A foreign key: the server keeps a column from leading to a deleted row, whatever program writes.
///
/// Only a column has one that no save, batch or migration can leave with such a key. A relationship without an inverse,
/// or whose inverse has the delete rule no-action, may lead to an object that its own context has deleted.
struct ForeignKey {
    let name: SQLName
    let table: SQLName
    let column: SQLName
    /// The table of the rows that the column leads to.
    let target: SQLName
    /// The names of the entity and the relationship of the column in messages.
    let entity: String
    let relationship: String

    /// The names by which it is the same foreign key in two versions of a model.
    var identity: [SQLName] { [name, table, column, target] }

    /// The prefix of their names, which distinguishes them from foreign keys of others.
    static let prefix = "strata_fk_"

    /// The foreign keys for a model, in the order of its tables.
    static func all(_ mapping: SQLMapping) -> [ForeignKey] {
        var names = UniqueNames(naming: mapping.dialect.naming.name)
        var keys: [ForeignKey] = []
        func add(on table: SQLName, column: SQLName, to target: SQLName, for relationship: Relationship) {
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
                add(on: entity.table, column: column, to: target.table, for: relationship)
            }
            for slot in entity.layout.ownToMany {
                switch entity.toMany[slot.index] {
                case .join(let side) where slot.relationship.isTold:
                    add(on: side.table, column: side.member, to: side.memberTable, for: slot.relationship)
                    if side.isSymmetric {
                        add(on: side.table, column: side.owner, to: entity.table, for: slot.relationship)
                    }
                case .key(let key) where key.isWithoutInverse:
                    // The members' rows have the key of their owner. A deletion of the owner clears it, whatever the
                    // delete rule.
                    add(on: key.table, column: key.column, to: entity.table, for: slot.relationship)
                default: break
                }
            }
        }
        return keys
    }

    /// The statement that makes it.
    ///
    /// It is checked when a transaction commits, because a save may write rows in any order, and may write two new rows
    /// that lead to each other.
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
    /// Whether each deletion of a destination removes it from the relationship.
    ///
    /// A batch deletion ignores transient relationships.
    fileprivate var isTold: Bool { !mayDangle && inverse?.isTransient == false }
}
