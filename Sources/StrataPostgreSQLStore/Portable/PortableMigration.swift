import Foundation
import StrataKeys
import StrataPostgreSQL

/// The migration of portable stores, which there is not yet.
///
/// A migration changes several tables in one transaction, and ends the sessions that have the old model. Engines for which portable stores are made have
/// neither such transactions nor a way to find the sessions.
enum PortableMigration {
    /// Refuses to migrate a portable store.
    ///
    /// - Throws: `migration` (134110) for a portable store.
    static func refuse(at target: ConnectionTarget, on connection: Connection) throws {
        guard try StoreMetadata.read(connection, target.place)?.isPortable == true else { return }
        throw CocoaError.described(
            .migration,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(target.place) is portable, and such stores are not migrated: the server may not change several tables in one transaction. Nothing was changed. Export the objects with the old model, and import them into a new store."
            ]
        ).marked(.environment)
    }
}
