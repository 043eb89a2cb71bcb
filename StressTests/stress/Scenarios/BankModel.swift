import CoreData

@ManagedObject
final class Account: NSManagedObject {
    @Managed var number: Int64
    @Managed var balance: Int64
}

/// Accounts, and nothing else.
enum BankModel {
    static func make() -> NSManagedObjectModel {
        let number = NSAttributeDescription()
        number.name = "number"
        number.type = .integer64
        let balance = NSAttributeDescription()
        balance.name = "balance"
        balance.type = .integer64
        let account = NSEntityDescription()
        account.name = "Account"
        account.managedObjectClassName = NSStringFromClass(Account.self)
        account.properties = [number, balance]
        let model = NSManagedObjectModel()
        model.entities = [account]
        return model
    }
}
