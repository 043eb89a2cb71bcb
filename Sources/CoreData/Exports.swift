// The framework is made of several modules; a program imports this one, which hands on all of them.
@_exported import CoreDataBatches
@_exported import CoreDataBinaryStore
@_exported import CoreDataClaims
@_exported import CoreDataContainer
@_exported import CoreDataCustomStores
@_exported import CoreDataEngineStores
@_exported import CoreDataEssentials
@_exported import CoreDataFetchedResults
@_exported import CoreDataHistory
@_exported import CoreDataKeyPaths
@_exported import CoreDataLocking
@_exported import CoreDataMessages
@_exported import CoreDataMigration
@_exported import CoreDataModelClasses
@_exported import CoreDataModelFiles
@_exported import CoreDataOperations
@_exported import CoreDataReads
@_exported import CoreDataRows
@_exported import CoreDataTenants
import StrataPredicates

/// The expressions of this module, under a name with which a client can say which type it means.
///
/// Foundation on Linux has a type of that name too. In a module that imports both, `typealias NSExpression = CoreData.NSExpression`
/// makes the name mean this one.
///
/// ```swift
/// let half = NSExpression(format: "price / 2")
/// print(half.expressionValue(with: venue, context: nil) ?? 0)
/// ```
public typealias NSExpression = StrataPredicates.NSExpression

/// The comparisons of this module, under a name with which a client can say which type it means.
///
/// Foundation on Linux has a class of that name too. In a module that imports both,
/// `typealias NSComparisonPredicate = CoreData.NSComparisonPredicate` makes the name mean this one.
///
/// ```swift
/// request.predicate = NSComparisonPredicate(
///     leftExpression: NSExpression(forKeyPath: "price"), rightExpression: NSExpression(forConstantValue: 20),
///     modifier: .direct, type: .lessThan)
/// ```
public typealias NSComparisonPredicate = StrataPredicates.NSComparisonPredicate
